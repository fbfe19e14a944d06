"""Clock for the ends of logins: they last no longer if the machine's clock is set back.

While a server runs, time passes for it whatever is done to the clock. For its next start,
the latest time that was seen is in the file of logins (`Book.seen`). A clock that is a little
behind that was set right; if it is far behind, nobody knows how old a login is, so none counts
until the clock is right again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 3600.0
"""Seconds that a clock may be set back without any doubt."""


def _elapse() -> float:
    """Return seconds that also pass while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Ages:
    """Time of one process, which never goes back."""

    def __init__(
        self, clock: Callable[[], float] = time.time, elapse: Callable[[], float] = _elapse
    ) -> None:
        """Take `clock`, which tells the time, and `elapse`, seconds from any start."""
        self._clock, self.elapse = clock, elapse
        self._at, self._since = clock(), elapse()

    def tell_time(self) -> float:
        """Return seconds since 1970: by the clock, or as many as have passed if that is later."""
        passed = self.elapse()
        self._at = max(self._clock(), self._at + passed - self._since)
        self._since = passed
        return self._at


def is_in_doubt(now: float, seen: float) -> bool:
    """Say whether the clock went back so far since that nobody knows how much time has passed."""
    return seen - now > STEP_S
