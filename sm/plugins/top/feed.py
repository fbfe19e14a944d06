"""What the list is made of, read from the files: all of it at first, then what has changed.

What has changed is known from the journal's growth, and from the times of the files that an agent's
hooks write. All is read again when something else has happened, and now and then: so seldom that
it takes a small part of a processor.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from sm.base.errors import SmError, StateError, UsageError
from sm.sessions import registry
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import journal
from sm.views.board import Board, BoardRow, make_board, read_board
from sm.views.open_need import OpenNeed
from sm.views.people import find_people
from sm.views.project import Overview, read_sessions_without_project
from sm.views.session import make_rows, read_last_look
from sm.views.trace import AT_WORK, read_story_of

LOOK_S = 0.25
"""Between two looks at the size of the journal."""
STAMPS_S = 1.0
"""Between two looks at the times of the sessions' files."""
STAMPS_OF_ONE_S = 0.01
"""With more than a hundred sessions these looks are rarer: so far apart for each of them."""
AGAIN_S = 10.0
"""All is read again so often, if that is cheap."""
PART = 500
"""All is read so seldom that it takes a part of a processor of one in so many."""
NEWS_PART = 50
"""The same while the last look at a forge is another one each time."""
BUSY_PART = 5
"""The same while something happens that concerns more than single sessions."""

Stamps = tuple[int, ...]


class Seen(Struct, frozen=True):
    """All that is shown. `changed` are the sessions in which something has happened since."""

    rows: tuple[BoardRow, ...] = ()
    needs: tuple[OpenNeed, ...] = ()
    paused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    whole: bool = False


class Feed:
    """Reads it. `is_due` costs next to nothing; `read` may take a while, so a thread calls it."""

    def __init__(self, machine: Machine, projects: Iterable[Project]) -> None:
        self.machine = machine
        self.root = machine.root
        self._projects = {project.name: project for project in projects}
        self._board = Board(at=0.0)
        self._position = journal.find_size(self.root.journal)
        self._size = 0
        self._files: dict[str, tuple[str, ...]] = {}
        self._stamps: dict[str, Stamps] = {}
        self._stamps_at = 0.0
        self._whole_at = 0.0
        self._soonest = 0.0
        self._after_news = 0.0
        self._snapshots = [str(one.directory.snapshot) for one in self._projects.values()]
        self._looked: Stamps = ()
        self._outcomes: dict[str, str] = {}

    def is_due(self) -> bool:
        """Whether something has happened, or the time is over for which nothing is looked at."""
        now = time.monotonic()
        if now >= self._whole_at or _measure(self.root.journal) != self._size:
            return True
        if now < self._stamps_at:
            return False
        self._stamps_at = now + max(STAMPS_S, len(self._stamps) * STAMPS_OF_ONE_S)
        if tuple(map(_time, self._snapshots)) != self._looked:
            self._whole_at = min(self._whole_at, self._after_news)
        return now >= self._whole_at or bool(self._find_touched())

    def read(self) -> Seen:
        """What is there now.

        Raises:
            SmError: nothing of it can be read.

        """
        self._size = _measure(self.root.journal)
        events, self._position = journal.read_since(self.root.journal, self._position)
        names = {event.session for event in events}
        changed = names | self._find_touched()
        if names - self._stamps.keys():
            self._whole_at = min(self._whole_at, max(self._soonest, time.monotonic()))
        if time.monotonic() >= self._whole_at:
            self._read_whole()
            return self._seen(changed, whole=True)
        self._read_some(changed & self._stamps.keys())
        return self._seen(changed, whole=False)

    def find_outcome(self, name: str) -> str:
        """How a session has ended that is not there any more; '' if that is not known."""
        return self._outcomes.get(name, "")

    def _seen(self, changed: set[str], *, whole: bool) -> Seen:
        board = self._board
        return Seen(
            board.rows, board.needs, board.paused, board.problems, frozenset(changed), whole
        )

    def _find_touched(self) -> set[str]:
        return {name for name, stamps in self._stamps.items() if self._stamp(name) != stamps}

    def _stamp(self, name: str) -> Stamps:
        """The times of the files in which the state of a session is told without an event."""
        return tuple(map(_time, self._files[name]))

    def _watch(self, name: str) -> Stamps:
        """Begin to look at these files, and return their times."""
        one = self.root.session(name)
        self._files[name] = tuple(map(str, (one.path, one.state, one.usage, one.stop_payload)))
        return self._stamp(name)

    def _read_whole(self) -> None:
        begun, spent = time.monotonic(), time.thread_time()
        self._whole_at = begun + AGAIN_S  # also if it fails
        before = {row.id for row in self._board.rows}
        self._looked = tuple(map(_time, self._snapshots))
        stamps = {name: self._stamp(name) for name in self._stamps}
        board = read_board(self.machine, self._projects.values())
        self._take(board, before, stamps)
        took, now = time.thread_time() - spent, time.monotonic()
        self._soonest = now + max(took * BUSY_PART, now - begun)
        self._after_news = now + took * NEWS_PART
        self._whole_at = now + max(AGAIN_S, took * PART)

    def _take(self, board: Board, before: set[str], stamps: dict[str, Stamps]) -> None:
        self._board = board
        for name in before - {row.id for row in board.rows}:
            self._outcomes[name] = self._find_end(name)
        self._stamps = {row.id: stamps.get(row.id) or self._watch(row.id) for row in board.rows}

    def _find_end(self, name: str) -> str:
        with contextlib.suppress(SmError):
            outcome = read_story_of(self.root, name, name).summary.outcome
            return "" if outcome == AT_WORK else outcome
        return ""

    def _read_some(self, names: set[str]) -> None:
        """Read these sessions again, and leave the others as they are."""
        if not names:
            return
        for name in names:  # before it is read: what is written meanwhile is read again
            self._stamps[name] = self._stamp(name)
        found = {row.id: row for row in self._read_rows(names)}
        gone = names - found.keys()
        needs = [one for one in self._board.needs if one.session not in names]
        needs += [row.need for row in found.values() if row.need]
        rows = tuple(found.get(row.id, row) for row in self._board.rows if row.id not in gone)
        for name in gone:
            self._outcomes[name] = self._find_end(name)
            del self._stamps[name]
        board = self._board
        self._board = Board(
            at=time.time(),
            needs=tuple(needs),
            rows=rows,
            seen=board.seen,
            paused=board.paused,
            problems=board.problems,
        )

    def _read_rows(self, names: set[str]) -> list[BoardRow]:
        opened = self._projects
        by_project: dict[str, list[IssueSession]] = {}
        found, is_ad_hoc = list[BoardRow](), False
        for name in names:
            try:
                session = registry.find(self.root, name)
            except (StateError, UsageError):  # a whole look says what is wrong with it
                found += [row for row in self._board.rows if row.id == name]
                continue
            if isinstance(session, IssueSession) and session.project_name in opened:
                session.provide(project=opened[session.project_name])
                by_project.setdefault(session.project_name, []).append(session)
            elif session is not None:
                is_ad_hoc = True
        now, seen = time.time(), list[Overview]()
        for project, sessions in by_project.items():
            seen.append(_look_at(opened[project], sessions, now))
        if is_ad_hoc and (others := read_sessions_without_project(self.root, self.machine.tmux)):
            seen.append(others)

        def link(project: str, pull: int) -> str:
            return opened[project].settings.forge.link_pull(pull)

        made = make_board(self.root, seen, now, link).rows
        return [*found, *(row for row in made if row.id in names)]


def _look_at(project: Project, sessions: list[IssueSession], now: float) -> Overview:
    people = find_people(project.tmux, sessions, now)
    rows = make_rows(project, now, sessions, read_last_look(project), people)
    return Overview(project=project.name, seen_at=0.0, sessions=tuple(rows))


def _measure(path: Path) -> int:
    """The size of a file in bytes; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _time(path: str) -> int:
    """When a file was written last, in nanoseconds; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - a Path would take three times as long
    except OSError:
        return 0
