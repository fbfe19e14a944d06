"""The limits of what agents may spend, as far as a person may change them on the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.issues import meters
from sm.issues.meters import SetLimit
from sm.plugins.page.gone import GoneError
from sm.plugins.page.looks import Looks
from sm.views import steering
from sm.views.board import Board
from sm.views.offers import NO_LIMITS, Limits
from sm.views.open_need import OpenNeed


def find_needed(looks: Looks, board: Board) -> Limits:
    """The limits that the needs of the board are about, by the command that raises each."""
    needs = [need for need in board.needs if need.kind is NeedKind.BUDGET]
    if not needs:
        return NO_LIMITS
    return {limit.command: limit for need in needs for limit in _list_of(looks, need)}


def _list_of(looks: Looks, need: OpenNeed) -> Iterator[SetLimit]:
    try:
        yield from list_limits(looks, need.session, need.project)
    except SmError:  # it has just ended
        return


def list_limits(looks: Looks, session: str, project: str = "") -> list[SetLimit]:
    """Those that a session is under; without one those that a project's sessions share.

    Raises:
        GoneError: there is no such session, or project.

    """
    if session and (there := looks.find_there(session)):
        row = looks.read()[0].find(session)
        return steering.list_limits(there, row.need if row else None)
    if session:
        return meters.list_limits(looks.find_session(session))
    return meters.list_limits(looks.find_project(project))


def find_limit(limits: Iterable[SetLimit], key: str) -> SetLimit:
    """Return the limit of that key.

    Raises:
        GoneError: there is none any more.

    """
    for limit in limits:
        if limit.key == key:
            return limit
    raise GoneError("there is no such limit any more: load the page again")
