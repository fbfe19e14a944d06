"""Deadlines by the monotonic clock, and the age of moments on record.

A wait within a process is measured by the monotonic clock (`Deadline`). Moments on record are of
the wall clock, which may have been set back since.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """The end of a time that begins now, whatever is done to the clock meanwhile."""

    __slots__ = ("_at",)

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self._at

    @property
    def left_s(self) -> float:
        """The seconds that are left, 0 once it is over."""
        return max(0.0, self._at - time.monotonic())


def wait_until(condition: Callable[[], object], timeout_s: float, pause_s: float) -> bool:
    """Look every `pause_s` seconds, at least once, for the condition; False if it stays unmet."""
    deadline = Deadline(timeout_s)
    while not condition():
        if deadline.is_over:
            return False
        time.sleep(pause_s)
    return True


def is_within(seconds: float, since: float) -> bool:
    """Say whether at most `seconds` have passed since `since`; False for a moment to come.

    `since` is in seconds since 1970.
    """
    return 0 <= time.time() - since < seconds


def is_ahead(at: float, seconds: float) -> bool:
    """Say whether `at` (seconds since 1970) comes within `seconds`; False if later, or past."""
    return 0 < at - time.time() <= seconds


def format_time(moment: float, now: float) -> str:
    """Return a moment as local time of day, with the date unless it is that of `now`."""
    at = time.localtime(moment)
    same_day = at[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M" if same_day else "%Y-%m-%d %H:%M", at)
