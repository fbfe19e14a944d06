"""Ticks of dev-poll: when the last one was completed, how it went, and if any are missed.

Looks at the forge do not tell that: monitors take them, too, as long as there are sessions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError, Unable
from sm.base.text import one_line
from sm.sessions.project import Project
from sm.store import lock
from sm.store.damage import read_rebuildable
from sm.store.files import discard, write_json
from sm.store.paths import ProjectDir

MISSED = 2
"""Ticks that may be missed before people are told that dev-poll does not run."""
LEAST_S = 60.0
"""Shortest time until people are told, in seconds: cron knows whole minutes."""
RAREST_S = 3600.0
"""Longest time between expected ticks, in seconds; in a longer pause nothing ran."""
GAPS = 3
UNABLE_LIMIT, TEXT_LIMIT = 20, 300

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Id that changes with each start of the machine (random(4))."""


class Clock(Struct, frozen=True):
    """Moment: seconds since 1970, and seconds since the boot `boot` without time asleep.

    The latter are CLOCK_MONOTONIC (clock_gettime(2)): alike for all processes, and nobody sets
    them. While a machine sleeps nothing can run, and no tick is missed.
    """

    at: float
    up_s: float = 0.0
    boot: str = ""

    @classmethod
    def read(cls) -> Clock:
        """Read the present moment."""
        try:
            boot = BOOT.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            boot = ""
        return cls(time.time(), time.monotonic(), boot)

    def count_since(self, other: Clock) -> float:
        """Return the seconds since an earlier moment; 0 if the clock was set back meanwhile."""
        if self.boot and self.boot == other.boot:
            return self.up_s - other.up_s
        return max(0.0, self.at - other.at)


class Polled(Struct, frozen=True, omit_defaults=True):
    """Tick that was completed at `clock`, and took `took_s` seconds.

    `error` is why it was cut short, '' if it was not, and `unable` what it could not start or look
    after, a line each. `gaps_s` are the seconds between the last completed ticks.
    """

    clock: Clock
    took_s: float = 0.0
    error: str = ""
    unable: tuple[str, ...] = ()
    gaps_s: tuple[float, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether something in it went wrong."""
        return bool(self.error or self.unable)

    @property
    def usual_gap_s(self) -> float:
        """Seconds to the next tick, by the last ones: cron may be slower than configured.

        The middle one of three: neither one by hand nor a time without dev-poll changes it.
        """
        return sorted(self.gaps_s)[(len(self.gaps_s) - 1) // 2] if self.gaps_s else 0.0


class TickSilence(Struct, frozen=True):
    """Time without ticks: since `since` (seconds since 1970), by now `for_s` seconds."""

    since: float
    for_s: float


def read_polled(directory: ProjectDir) -> Polled | None:
    """Read the last completed tick; None if there was none, or it is unknown."""
    return read_rebuildable(directory.polled, Polled)


def keep_outcome(directory: ProjectDir, lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a tick; record that it is completed, and how it went.

    A tick that is killed is not completed.
    """
    began, unable = time.monotonic(), list[str]()
    try:
        for line in lines:
            if isinstance(line, Unable):
                unable.append(line)
            yield line
    except Exception as error:
        _write(directory, began, unable, describe(error))
        raise
    _write(directory, began, unable, "")


def describe(error: Exception) -> str:
    """Return what cut the tick short, in a line."""
    said = error.message if isinstance(error, SmError) else f"{type(error).__name__}: {error}"
    return one_line(said, TEXT_LIMIT)


def _write(directory: ProjectDir, began: float, unable: list[str], error: str) -> None:
    last, clock = read_polled(directory), Clock.read()
    gaps = (*last.gaps_s, min(clock.count_since(last.clock), RAREST_S)) if last else ()
    tick = Polled(
        clock=clock,
        took_s=round(time.monotonic() - began, 3),
        error=error,
        unable=tuple(one_line(line, TEXT_LIMIT) for line in unable[:UNABLE_LIMIT]),
        gaps_s=tuple(round(gap, 3) for gap in gaps[-GAPS:]),
    )
    write_json(directory.polled, tick)
    discard(directory.poll_missed)


def read_silence(project: Project) -> TickSilence | None:
    """Return how long expected ticks are missing; None while they come, or none ever came.

    A tick that takes long is under way, and is not missed.
    """
    directory = project.root.project(project.name)
    if _is_young(directory.polled) or lock.is_held(directory.poll_lock):
        return None
    # The last holder of the lock has written it by now.
    if (last := read_polled(directory)) is None:
        return None
    silence = TickSilence(last.clock.at, Clock.read().count_since(last.clock))
    return silence if silence.for_s > find_patience(project, last) else None


def find_patience(project: Project, last: Polled) -> float:
    """Return the seconds after the last tick within which another one is to be completed."""
    every_s = max(project.settings.poll_interval_s, last.usual_gap_s)
    return max(MISSED * every_s, LEAST_S)


def _is_young(path: Path) -> bool:
    """Whether the file is so new that nothing can be missed; mostly no more is needed to know."""
    try:
        return 0 <= time.time() - path.stat().st_mtime < LEAST_S
    except FileNotFoundError:
        return True
