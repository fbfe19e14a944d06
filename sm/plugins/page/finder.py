"""Lookups of the page: what an act is about, where a session is, and which limits it has."""

from __future__ import annotations

from collections.abc import Iterator

from sm.acts import here
from sm.acts.offer import NO_LIMITS, Limits
from sm.base.act import Act
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.issues import meters
from sm.issues.meters import SetLimit
from sm.plugins.page.board_reader import BoardReader
from sm.plugins.page.gone import GoneError
from sm.store.paths import NAME
from sm.views.board import Board
from sm.views.open_need import OpenNeed
from sm.views.place import Place


class PageFinder:
    """Finds what an act on the page is about: `Finder` of sm/acts/execution.py."""

    def __init__(self, looks: BoardReader) -> None:
        """Find by what the page has read."""
        self._looks = looks
        self.root = looks.machine.root
        self.find_project = looks.find_project
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
        return {limit.act: limit for need in needs for limit in self._list_of(need)}

    def _list_of(self, need: OpenNeed) -> Iterator[SetLimit]:
        try:
            yield from self.list_limits(need.session, need.project)
        except SmError:  # it has just ended
            return
