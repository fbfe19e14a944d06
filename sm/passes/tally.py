"""Tally of the passes that the server has made: their number, ends and durations.

The sums go on when the server begins again. They are written now and then, and as the server ends:
if it is killed, the sums of the last seconds are lost.
"""

from __future__ import annotations

import contextlib
import time
from bisect import bisect_left
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError
from sm.passes.fork import ELSEWHERE
from sm.store.damage import read_rebuildable
from sm.store.files import write_json

BOUNDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Limits in seconds: each counts the passes that took no longer, and longer than the one before."""
WRITE_S = 5.0
"""Interval of writing the sums, in seconds, at least."""
KILLED = 128
"""Number that a killed process's exit code adds the signal to."""


class PassEnd(StrEnum):
    """End of a pass."""

    DONE = "done"
    FAILED = "failed"
    KILLED = "killed"
    ELSEWHERE = "elsewhere"
    """The monitor makes the pass by itself."""


class Sums(Struct):
    """Sums of passes since `since`, seconds since 1970: by end, by time, and their whole time.

    `took` has a number for each of `BOUNDS`, and one for those that took longer.
    """

    since: float
    ended: dict[PassEnd, int]
    took: list[int]
    took_s: float = 0.0


def judge(code: int) -> PassEnd:
    """Return the end of a pass with that exit code."""
    if code == ELSEWHERE:
        return PassEnd.ELSEWHERE
    if code > KILLED:
        return PassEnd.KILLED
    return PassEnd.FAILED if code else PassEnd.DONE


def read_sums(path: Path) -> Sums | None:
    """Return the sums that were written last; None if there are none."""
    found = read_rebuildable(path, Sums)
    return found if found and len(found.took) == len(BOUNDS) + 1 else None


class Tally:
    """Tally of one server."""

    def __init__(self, path: Path) -> None:
        """Go on with the sums of the server before."""
        self._path = path
        self._sums = _read_or_begin(path)
        self._is_new = False
        self._written_at = 0.0

    def add(self, code: int, took_s: float) -> None:
        """Count a pass."""
        ended = judge(code)
        self._sums.ended[ended] = self._sums.ended.get(ended, 0) + 1
        self._sums.took[bisect_left(BOUNDS, took_s)] += 1
        self._sums.took_s += took_s
        self._is_new = True

    def write(self, *, at_once: bool = False) -> None:
        """Write what is new, unless that was done just now."""
        now = time.monotonic()
        if self._is_new and (at_once or now >= self._written_at + WRITE_S):
            self._written_at, self._is_new = now, False
            with contextlib.suppress(SmError, OSError):  # passes go on with a full disk
                write_json(self._path, self._sums)


def _read_or_begin(path: Path) -> Sums:
    with contextlib.suppress(SmError, OSError):
        if found := read_sums(path):
            return found
    return Sums(time.time(), {}, [0] * (len(BOUNDS) + 1))
