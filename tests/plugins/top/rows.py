"""Rows and needs of a board, made by hand."""

from __future__ import annotations

from typing import Any

from sm.base.need import NeedKind
from sm.sessions.activity import Evidence, Proof
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow
from sm.views.states import ShownState
from tests.acts.commands import read_act


def a_row(issue: int, **more: Any) -> SessionRow:
    """The session of that issue, at work."""
    given: dict[str, Any] = {
        "id": f"dev-shop-{issue}",
        "name": f"shop#{issue}",
        "project": "shop",
        "issue": issue,
        "title": f"Mend {issue}",
        "state": ShownState.WORKING,
        "proof": Proof(Evidence.PHASE),
    }
    return SessionRow(**given | more)


def a_need(issue: int = 0, **more: Any) -> OpenNeed:
    """A question of that issue's session; 0: that no dev-poll runs."""
    kind = NeedKind.QUESTION if issue else NeedKind.POLL
    given: dict[str, Any] = {
        "key": f"dev-shop-{issue}:{kind}",
        "kind": kind,
        "project": "shop",
        "issue": issue,
        "session": f"dev-shop-{issue}" if issue else "",
        "text": "The agent asks for a person (red or blue?)",
        "command": f"sm reply shop {issue} TEXT" if issue else "dev-poll --loop",
    } | more
    return OpenNeed(act=read_act(given.pop("command")), **given)
