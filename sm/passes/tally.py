"""How many passes the server has made, how they ended, and how long they took.

The sums go on when the server begins anew. They are written now and then, and as the server ends:
if it is killed, those of the last seconds are lost.
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
"""Seconds: how many passes took no longer than each, and more than the one before."""
WRITE_S = 5.0
"""The sums are written so often at most."""
KILLED = 128
"""The exit code of a killed process has the signal added to that."""


class Ended(StrEnum):
    """How a pass has ended."""

    DONE = "done"
    FAILED = "failed"
    KILLED = "killed"
    ELSEWHERE = "elsewhere"
    """Its monitor makes it by itself."""


class Sums(Struct):
    """The passes since `since`, seconds since 1970: by their end, by time, and their whole time.

    `took` has a number for each of `BOUNDS`, and one for those that took longer.
    """

    since: float
    ended: dict[Ended, int]
    took: list[int]
    took_s: float = 0.0


def judge(code: int) -> Ended:
    """How a pass with that exit code has ended."""
    if code == ELSEWHERE:
        return Ended.ELSEWHERE
    if code > KILLED:
        return Ended.KILLED
    return Ended.FAILED if code else Ended.DONE


def read_sums(path: Path) -> Sums | None:
    """The sums that were written last; None if there are none."""
    found = read_rebuildable(path, Sums)
    return found if found and len(found.took) == len(BOUNDS) + 1 else None


class Tally:
    """The sums of one server."""

    def __init__(self, path: Path) -> None:
        """Go on with what the server before had."""
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
