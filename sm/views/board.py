"""Board: the rows of every overview and all needs, for the page and `sm top`, again and again.

A caller that looks again reads unchanged rows no second time. A row is made again when its session
has an event, or another file, issue, pull request, person or configuration; and after some seconds
in any case, as time passes and processes end.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from sm.base.text import one_line
from sm.config.schema import ProjectSettings
from sm.issues.look.snapshot import Snapshot
from sm.sessions.machine import Machine
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import journal
from sm.store.events import Event
from sm.views.family import People, look_near
from sm.views.needs import sort_needs
from sm.views.open_need import OpenNeed
from sm.views.project import Overview, read_all
from sm.views.projects import Configured
from sm.views.session import make_rows
from sm.views.session_row import SessionRow

KEPT_S = 10.0
"""Earliest age at which a row is made again, in seconds; twice that at the latest."""


class Board(Struct, frozen=True, kw_only=True):
    """Board at the moment `at`: first what needs a person, then every session.

    `seen` says when each project's forge was looked at last. `paused` and `problems` are sentences.
    """

    at: float
    needs: tuple[OpenNeed, ...] = ()
    rows: tuple[SessionRow, ...] = ()
    seen: dict[str, float] = {}
    paused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, ident: str) -> SessionRow | None:
        """Return the row of the session with that id."""
        return next((row for row in self.rows if row.id == ident), None)


def _list_problems(overviews: Iterable[Overview]) -> Iterator[str]:
    for one in overviews:
        yield from (f"{one.project}: {one_line(problem)}" for problem in one.problems)
        if one.hint:
            yield f"{one.project}: {one_line(one.hint)}"


class _Kept(Struct):
    """Row, what it was made of, and when it is made again."""

    row: SessionRow
    made_of: object
    until: float


class WatchedBoard:
    """Board of a machine. One thread at a time."""

    def __init__(self, machine: Machine) -> None:
        """Begin with nothing read."""
        self._machine = machine
        self._kept: dict[str, _Kept] = {}
        self._paths: dict[str, tuple[str, ...]] = {}
        self._settings: dict[str, ProjectSettings] = {}
        self._events: dict[str, Event] = {}
        self._position: int | None = None
        self.heard: frozenset[str] = frozenset()
        """Sessions that had an event between the last two readings."""

    @property
    def position(self) -> int:
        """Place in the journal up to which the board knows everything."""
        return self._position or 0

    def read_configured(self, configured: Configured, now: float | None = None) -> Board:
        """Read the board of a configuration, which may have changed since."""
        self._machine = configured.machine
        return self.read(configured.projects, now, configured.need)

    def read(
        self,
        projects: Collection[Project],
        now: float | None = None,
        of_machine: OpenNeed | None = None,
    ) -> Board:
        """Read the board. No forge is asked. `of_machine` is a need beside all others."""
        now = time.time() if now is None else now
        self._take_events()
        for name in self._settings.keys() - {project.name for project in projects}:
            self._drop(name)
            del self._settings[name]
        for project in projects:
            if self._settings.get(project.name) != project.settings:
                self._drop(project.name)
                self._settings[project.name] = project.settings
        seen = read_all(self._machine, projects, now, self._make_rows, near=True)
        needs = [need for one in seen for need in one.needs]
        rows = tuple(row for one in seen for row in (*one.sessions, *one.ad_hoc))
        there = {row.id: row for row in rows}
        for name, kept in self._kept.items():
            kept.row = there.get(name, kept.row)  # which may have other figures
        self._kept = {name: kept for name, kept in self._kept.items() if name in there}
        self._paths = {name: paths for name, paths in self._paths.items() if name in there}
        return Board(
            at=now,
            needs=tuple(sort_needs([of_machine, *needs] if of_machine else needs)),
            rows=rows,
            seen={one.project: one.seen_at for one in seen if one.project},
            paused=tuple(dict.fromkeys(sentence for one in seen for sentence in one.paused)),
            problems=tuple(_list_problems(seen)),
        )

    def _take_events(self) -> None:
        """Learn the last event of each session; the first time they are looked for elsewhere."""
        path = self._machine.root.journal
        if self._position is None:
            self._position = journal.find_size(path)
            return
        told, self._position = journal.read_since(path, self._position)
        for event in told:
            self._events[event.session] = event
            self._kept.pop(event.session, None)
        self.heard = frozenset(event.session for event in told)

    def _drop(self, project: str) -> None:
        self._kept = {
            name: kept for name, kept in self._kept.items() if kept.row.project != project
        }

    def _make_rows(
        self,
        project: Project,
        now: float,
        sessions: list[IssueSession],
        known: Snapshot,
        people: People,
    ) -> Sequence[SessionRow]:
        slots = _stamp(str(project.root.project(project.name).slots))
        made_of = {
            one.name: (
                self._stamp_files(one),
                slots,
                known.issue(one.issue),
                known.pull(one.record.branch),
                known.head(one.record.branch),
                known.writers,
                people.get(one.name),
            )
            for one in sessions
        }
        stale = [one for one in sessions if self._is_stale(one.name, made_of[one.name])]
        unknown = {one.name for one in stale} - self._events.keys()
        if unknown:
            self._events |= journal.find_latest(project.root.journal, unknown)
        made = make_rows(project, now, stale, known, people, self._events)
        for row, one in zip(made, stale, strict=True):
            until = time.monotonic() + KEPT_S * (1 + zlib.crc32(row.id.encode()) % 100 / 100)
            self._kept[row.id] = _Kept(look_near(row, one), made_of[row.id], until)
        return [self._kept[one.name].row for one in sessions]

    def _is_stale(self, name: str, made_of: object) -> bool:
        kept = self._kept.get(name)
        return kept is None or kept.made_of != made_of or time.monotonic() > kept.until

    def _stamp_files(self, session: IssueSession) -> tuple[object, ...]:
        """Return when the files of the row were written."""
        paths = self._paths.get(session.name)
        if paths is None:
            paths = self._paths[session.name] = _list_paths(session)
        return tuple(map(_stamp, paths))


def _list_paths(session: IssueSession) -> tuple[str, ...]:
    """List the files that the row is made of; a rename changes the folder itself.

    Hooks write `events` in each call, and the status line `usage`; receipts are appended.
    """
    directory = session.dir
    paths = (
        directory.path,
        directory.state,
        directory.events,
        directory.usage,
        directory.receipts,
        directory.agent_pid,
        directory.queue / "new",
        session.root.phase(session.record.project, session.issue),
    )
    return tuple(map(str, paths))


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path takes three times as long
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
