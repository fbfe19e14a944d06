"""Feed of the list, read from the files again when something has happened.

Such news is known from the journal's growth, and from the times of the files that an agent's hooks
write. All is read again now and then, too: so seldom that it takes a small part of a processor.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.views.board import Board, WatchedBoard
from sm.views.open_need import OpenNeed
from sm.views.projects import ProjectsReader
from sm.views.session_row import SessionRow
from sm.views.trace import AT_WORK, read_story_of

LOOK_S = 0.25
"""Seconds between two looks at the size of the journal."""
STAMPS_S = 1.0
"""Seconds between two looks at the times of the sessions' files, at least."""
STAMPS_OF_ONE_S = 0.01
"""Seconds between these looks for each session, if there are more than a hundred."""
AGAIN_S = 10.0
"""Seconds between two full reads, if those are cheap."""
THERE_S = 3.0
"""Seconds between two full reads while there are sessions elsewhere, whose machines write no file
here."""
PART = 500
"""Pause after a read at least, in multiples of the processor time that the read took."""
NEWS_PART = 50
"""Pause, in such multiples, while there is a new look at a forge each time."""
BUSY_PART = 5
"""Pause, in such multiples, while something happens in sessions all the time."""

Stamps = tuple[int, ...]


class Seen(Struct, frozen=True):
    """Result of a read. `changed` are the sessions in which something has happened since then."""

    rows: tuple[SessionRow, ...] = ()
    needs: tuple[OpenNeed, ...] = ()
    paused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()


class Feed:
    """Reads the list. `is_due` costs next to nothing; `read` is slow, so a thread calls it."""

    def __init__(self, machine: Machine, reader: ProjectsReader) -> None:
        self.root = machine.root
        self._reader = reader
        self._watched = WatchedBoard(machine)
        self._rows: tuple[SessionRow, ...] = ()
        self._size = 0
        self._files: dict[str, tuple[str, ...]] = {}
        self._stamps: dict[str, Stamps] = {}
        self._stamps_at = 0.0
        self._again_at = 0.0
        self._soonest = 0.0
        self._after_news = 0.0
        self._snapshots = self._list_snapshots()
        self._looked: Stamps = ()
        self._outcomes: dict[str, str] = {}

    @property
    def projects(self) -> dict[str, Project]:
        """Projects by their names, as they were read last."""
        return {one.name: one for one in self._reader.projects}

    def _list_snapshots(self) -> list[str]:
        return [str(one.directory.snapshot) for one in self._reader.projects]

    def is_due(self) -> bool:
        """Say whether something has happened, or it is time to look anyway."""
        now = time.monotonic()
        if now >= self._again_at:
            return True
        if now < self._soonest:
            return False
        if _measure(self.root.journal) != self._size:
            return True
        if now < self._stamps_at:
            return False
        self._stamps_at = now + max(STAMPS_S, len(self._stamps) * STAMPS_OF_ONE_S)
        if tuple(map(_time, self._snapshots)) != self._looked:
            self._again_at = min(self._again_at, self._after_news)
        if now >= self._again_at or self._reader.has_changed():
            return True
        return self._take_stamps() != self._stamps

    def read(self) -> Seen:
        """Read what is there now.

        Raises:
            SmError: nothing of it can be read.

        """
        begun, spent = time.monotonic(), time.thread_time()
        self._again_at = begun + AGAIN_S  # also if it fails
        # Before it is read: what is written meanwhile is read again.
        self._size = _measure(self.root.journal)
        configured = self._reader.read()
        self._snapshots = self._list_snapshots()
        self._looked = tuple(map(_time, self._snapshots))
        stamps = self._take_stamps()
        touched = {name for name, times in stamps.items() if times != self._stamps[name]}
        board = self._watched.read_configured(configured)
        self._take(board, stamps)
        self._plan(begun, time.thread_time() - spent)
        changed = touched | self._watched.heard
        return Seen(self._rows, board.needs, board.paused, board.problems, frozenset(changed))

    def spoil(self) -> None:
        """Have everything read again at once: something was done that no file here tells."""
        self._again_at = 0.0

    def find_outcome(self, name: str) -> str:
        """Return how a session ended that is not there any more; '' if that is not known."""
        return self._outcomes.get(name, "")

    def _plan(self, begun: float, took: float) -> None:
        """Decide when to read again, as the last read `took` so many seconds of a processor."""
        now = time.monotonic()
        self._soonest = now + max(took * BUSY_PART, now - begun)
        self._after_news = now + took * NEWS_PART
        again_s = THERE_S if any(row.host for row in self._rows) else AGAIN_S
        self._again_at = now + max(again_s, took * PART)

    def _take_stamps(self) -> dict[str, Stamps]:
        return {name: self._stamp(name) for name in self._stamps}

    def _stamp(self, name: str) -> Stamps:
        """Return the times of the files that tell a session's state without an event."""
        return tuple(map(_time, self._files[name]))

    def _watch(self, name: str) -> Stamps:
        """Begin to look at these files, and return their times."""
        one = self.root.session(name)
        self._files[name] = tuple(map(str, (one.path, one.state, one.usage, one.stop_payload)))
        return self._stamp(name)

    def _take(self, board: Board, stamps: dict[str, Stamps]) -> None:
        self._rows = (*board.rows, *self._list_unreadable(board))
        there = {row.id for row in self._rows}
        for name in stamps.keys() - there:
            self._outcomes[name] = self._find_end(name)
        self._stamps = {name: stamps.get(name) or self._watch(name) for name in there}

    def _list_unreadable(self, board: Board) -> Iterator[SessionRow]:
        """List sessions that are on record and cannot be read, as they were: they are not over."""
        there = {row.id for row in board.rows}
        for row in self._rows:
            if row.id not in there and self.root.session(row.id).identity.exists():
                yield row

    def _find_end(self, name: str) -> str:
        with contextlib.suppress(SmError):
            outcome = read_story_of(self.root, name, name).summary.outcome
            return "" if outcome == AT_WORK else outcome
        return ""


def _measure(path: Path) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _time(path: str) -> int:
    """Return when a file was written last, in nanoseconds; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - a Path would take three times as long
    except OSError:
        return 0
