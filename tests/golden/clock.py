"""A clock that stands still, for a process of its own, at a moment that is the same in each run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOW = 1_772_625_600.0
"""4 March 2026, 12:00 UTC."""


class Clock:
    """What `time.time` says, and the functions of `time` that ask it."""

    def __init__(self) -> None:
        """Stand at `NOW`."""
        self.at = NOW
        self._localtime, self._strftime = time.localtime, time.strftime

    def read(self) -> float:
        """Return the moment at which it stands."""
        return self.at

    def read_ns(self) -> int:
        """Return the same in nanoseconds."""
        return round(self.at * 1_000_000_000)

    def localtime(self, seconds: float | None = None) -> time.struct_time:
        """Return local time, by default of the moment at which it stands."""
        return self._localtime(self.at if seconds is None else seconds)

    def strftime(self, form: str, at: time.struct_time | None = None) -> str:
        """Return a time in that form, by default the moment at which it stands."""
        return self._strftime(form, at or self.localtime())

    @contextmanager
    def ago(self, seconds: float) -> Iterator[None]:
        """Have it be that long before `NOW` for a while."""
        before, self.at = self.at, NOW - seconds
        try:
            yield
        finally:
            self.at = before


CLOCK = Clock()


def stop_clock() -> None:
    """Have the clock of this process stand still, in UTC, from now on.

    To be called before `sm` is imported: defaults of its functions are bound then. What waits by
    `time.monotonic` ends all the same. The times of files are the real ones until `date_files`.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()
    time.time, time.time_ns = CLOCK.read, CLOCK.read_ns
    time.localtime, time.strftime = CLOCK.localtime, CLOCK.strftime  # type: ignore[assignment]


def date_files(folder: Path, ago_s: float) -> None:
    """Give the files below `folder` that have a time of the real clock one before `NOW`."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink() and path.lstat().st_mtime > NOW:
            os.utime(path, (NOW - ago_s,) * 2)
