"""Looks at the machine for the page, shared by all browsers; and lookups in what they have read."""

from __future__ import annotations

import contextlib
import threading
import time

from sm.acts import here
from sm.acts.offer import NO_LIMITS, Limits
from sm.base.act import Act
from sm.base.errors import SmError, UsageError
from sm.base.need import NeedKind
from sm.issues import meters
from sm.issues.meters import SetLimit
from sm.plugins.page.errors import GoneError
from sm.sessions import registry
from sm.sessions.machine import Machine
from sm.sessions.project import Project, list_configured
from sm.sessions.session import AnySession, IssueSession
from sm.store import journal
from sm.store.paths import NAME
from sm.views.board import Board, WatchedBoard
from sm.views.place import Place
from sm.views.projects import ProjectsReader
from sm.views.session_row import SessionRow

FRESH_S = 1.0
"""Age up to which a board is as good as new, in seconds, unless something was told since."""


class BoardReader:
    """Reads the board at most once at a time: tabs that ask together get the same one."""

    def __init__(self, machine: Machine) -> None:
        """Read nothing yet."""
        self.machine = machine
        self._lock = threading.Lock()
        self._watched = WatchedBoard(machine)
        self._reader = ProjectsReader(machine)
        self._last: tuple[float, int, Board] | None = None
        self._spoilt = 0.0

    def list_projects(self) -> list[Project]:
        """List the projects of the configuration; none without one.

        Raises:
            UsageError: the configuration cannot be used any more.

        """
        return list_configured(self.machine)

    def read(self) -> tuple[Board, int]:
        """Return the board, and the position in the journal up to which it knows everything."""
        with self._lock:
            position = journal.find_size(self.machine.root.journal)
            if self._last:
                at, known, board = self._last
                is_new = self._spoilt < at and time.monotonic() < at + FRESH_S
                if known == position and is_new and not self._reader.has_changed():
                    return board, position
            at = time.monotonic()
            board = self._watched.read_configured(self._reader.read())
            self._last = at, self._watched.position, board
            return board, self._watched.position

    def stamp_configuration(self) -> object:
        """Return a value that is another one once the configuration's files have changed."""
        return self._reader.stamp()

    def read_there(self) -> dict[str, SessionRow]:
        """Read the rows of sessions elsewhere again; none without a look if there were none."""
        if self._last is None or not any(row.host for row in self._last[2].rows):
            return {}
        self.spoil()
        return {row.id: row for row in self.read()[0].rows if row.host}

    def spoil(self) -> None:
        """Have the next look read all anew: something has changed that no event tells.

        What is being read just now may be from before that.
        """
        self._spoilt = time.monotonic()

    def find_row(self, ident: str) -> SessionRow:
        """Find the row of a session.

        Raises:
            GoneError: there is no such session.

        """
        board, _ = self.read()
        if row := board.find(ident):
            return row
        raise GoneError("there is no such session any more")

    def find_project(self, name: str) -> Project:
        """Find the project of that name.

        Raises:
            GoneError: there is none.

        """
        for project in self.list_projects():
            if project.name == name:
                return project
        raise GoneError("there is no such project any more")

    def find_session(self, ident: str) -> AnySession:
        """Find the session of that id.

        Raises:
            GoneError: there is none.
            StateError: its record is damaged.

        """
        try:
            session = registry.find(self.machine.root, ident)
        except UsageError:  # it cannot be an id
            session = None
        if session is None:
            raise GoneError("there is no such session any more")
        if isinstance(session, IssueSession):
            return session.provide(project=self.find_project(session.project_name))
        return session


def list_changed(machine: Machine, position: int) -> tuple[set[str], int]:
    """List the sessions that the journal tells of behind `position`; say where it ends now.

    '' stands for what concerns no session, or several.
    """
    try:
        found, end = journal.read_since(machine.root.journal, position)
    except SmError:
        return {""}, position
    return {event.session for event in found}, end


class PageFinder:
    """Finds what an act on the page is about: `Finder` of sm/acts/execution.py."""

    def __init__(self, looks: BoardReader) -> None:
        """Find by what the page has read."""
        self._looks = looks
        self.root = looks.machine.root
        self.find_project = looks.find_project
        self.list_projects = looks.list_projects
        self.find_session = looks.find_session

    def find_place(self, ident: str) -> Place:
        """Find where the session of that id is.

        Raises:
            GoneError: it cannot be an id.

        """
        if not NAME.fullmatch(ident):
            raise GoneError("there is no such session any more")
        return here.find_place(self, self._looks.list_projects(), ident)

    def find_limit(self, act: Act) -> SetLimit:
        """Find a limit by its key.

        Raises:
            GoneError: there is none any more.

        """
        for limit in self.list_limits(act.session, act.project):
            if limit.key == act.limit:
                return limit
        raise GoneError("there is no such limit any more: load the page again")

    def list_limits(self, session: str, project: str = "") -> list[SetLimit]:
        """List the limits of a session; without one those that a project's sessions share.

        Raises:
            GoneError: there is no such session, or project.

        """
        if not session:
            return meters.list_limits(self.find_project(project))
        place = self.find_place(session)
        row = self._looks.read()[0].find(session) if place.host else None
        return place.list_limits(row.need if row else None)

    def find_needed(self, board: Board) -> Limits:
        """Find the limits that the needs of the board are about, by the act that raises each."""
        needs = [need for need in board.needs if need.kind is NeedKind.BUDGET]
        if not needs:
            return NO_LIMITS
        found = {}
        for need in needs:
            with contextlib.suppress(SmError):  # it has just ended
                for limit in self.list_limits(need.session, need.project):
                    found[limit.act] = limit
        return found
