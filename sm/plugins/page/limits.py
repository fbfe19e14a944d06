"""Limits of what agents may spend, as far as a person may change them on the page."""

from __future__ import annotations

from collections.abc import Iterator

from sm.acts import elsewhere
from sm.acts.offer import NO_LIMITS, Limits
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.issues import meters
from sm.issues.meters import SetLimit
from sm.plugins.page.looks import Looks
from sm.views.board import Board
from sm.views.open_need import OpenNeed


def find_needed(looks: Looks, board: Board) -> Limits:
    """Find the limits that the needs of the board are about, by the act that raises each."""
    needs = [need for need in board.needs if need.kind is NeedKind.BUDGET]
    if not needs:
        return NO_LIMITS
    return {limit.act: limit for need in needs for limit in _list_of(looks, need)}


def _list_of(looks: Looks, need: OpenNeed) -> Iterator[SetLimit]:
    try:
        yield from list_limits(looks, need.session, need.project)
    except SmError:  # it has just ended
        return


def list_limits(looks: Looks, session: str, project: str = "") -> list[SetLimit]:
    """List the limits of a session; without one those that a project's sessions share.

    Raises:
        GoneError: there is no such session, or project.

    """
    if session and (there := looks.find_there(session)):
        row = looks.read()[0].find(session)
        return elsewhere.list_limits(there, row.need if row else None)
    if session:
        return meters.list_limits(looks.find_session(session))
    return meters.list_limits(looks.find_project(project))
