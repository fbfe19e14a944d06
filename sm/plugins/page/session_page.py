"""Page of one session, and its parts, which are asked for one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import structs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sm.acts.offer import (
    list_limit_offers,
    list_steering,
    offer_message,
)
from sm.base.errors import SmError, UsageError
from sm.context import rotation_files
from sm.plugins.page import desk, session_parts
from sm.plugins.page.access import Visitor
from sm.plugins.page.board_page import answer_needs
from sm.plugins.page.changes_page import describe_change, read_change
from sm.plugins.page.ended_session import read_ended, read_screen
from sm.plugins.page.paths import BELOW
from sm.plugins.page.route import Page, PageRoute, show
from sm.sessions.session import IssueSession
from sm.views.family import add_fields
from sm.views.glossary import find_group
from sm.views.place import Place
from sm.views.session_row import SessionRow

PULL = "the pull request"


async def show_session(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with the page of one session."""
    ident = request.path_params["ident"]

    def make() -> Response:
        board, position = page.looks.read()
        row = board.find(ident)
        if row is None:
            return show("ended.html", visitor, ident=ident, ended=read_ended(page.looks, ident))
        limits = page.finder.list_limits(ident)
        named = {limit.act: limit for limit in limits}
        needs = [one for one in answer_needs(board, named) if one.need.session == ident]
        letter = offer_message(row.id, row.name)
        place = page.finder.find_place(ident)
        return show(
            "session.html",
            visitor,
            row=row,
            needs=needs,
            has_desk=any(one.head for one in needs),
            letter=letter,
            line=structs.replace(letter, asks=f"{letter.asks}; Enter sends it"),
            limits=[(limit, list_limit_offers(limit, ident)) for limit in limits],
            position=position,
            group=find_group(row),
            **(_gather_there(row) if place.host else _gather_here(page, row, place)),
        )

    return await page.read(make)


def _gather_here(page: Page, row: SessionRow, place: Place) -> dict[str, Any]:
    """Gather what the page has of a session of this machine alone, which is read at once."""
    session = page.looks.find_session(row.id)
    row = add_fields(row, session, ("document", "paused"))
    return {
        "host": "",
        "told": session_parts.read_told(place),
        "messages": session_parts.list_messages(place),
        "has_branch": isinstance(session, IssueSession),
        "has_documents": bool(row.document) or rotation_files.is_wanted(session.dir),
        "steering": list_steering(row, paused=row.paused),
    }


def _gather_there(row: SessionRow) -> dict[str, Any]:
    """Gather the same of a session elsewhere, without what its node is asked for."""
    return {
        "host": row.host,
        "has_branch": True,
        "has_documents": row.documents,
        "steering": list_steering(row, paused=row.paused),
    }


async def show_part(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with a part of that page: one that is opened, or that has changed."""
    ident, part = request.path_params["ident"], request.path_params["part"]
    try:
        if make := AT_PLACE.get(part):
            bound = partial(make, page, visitor)
            return await page.visit(ident, bound, asks=part in ASKED)
        if part not in PARTS:
            raise HTTPException(404)
        read = page.ask if part in ASKED else page.read
        return await read(partial(PARTS[part], page, ident, visitor))
    except SmError as error:  # a part of a page that is there all the same
        return show("outcome.html", visitor, why=error.message, done=False)


def _show_story(_page: Page, visitor: Visitor, place: Place) -> Response:
    return show("story.html", visitor, told=session_parts.read_told(place))


def _show_messages(_page: Page, visitor: Visitor, place: Place) -> Response:
    return show("messages.html", visitor, messages=session_parts.list_messages(place))


def _show_branch(page: Page, visitor: Visitor, place: Place) -> Response:
    found = read_change(place)
    return show("change.html", visitor, **describe_change(page, found, "the primary branch"))


def _show_unpushed(page: Page, visitor: Visitor, place: Place) -> Response:
    found = read_change(place, page.looks.find_row(place.session).head)
    return show("change.html", visitor, **describe_change(page, found, PULL))


def _show_documents(_page: Page, visitor: Visitor, place: Place) -> Response:
    return show("documents.html", visitor, documents=place.list_documents())


AT_PLACE: dict[str, Callable[[Page, Visitor, Place], Response]] = {
    "story": _show_story,
    "messages": _show_messages,
    "diff": _show_branch,
    "unpushed": _show_unpushed,
    "documents": _show_documents,
}
"""Makers of the parts that are read where the session is, by the part's name."""


def _show_screen(page: Page, ident: str, visitor: Visitor) -> Response:
    return show("screen.html", visitor, text=read_screen(page.looks.machine.root, ident))


def _show_judged(page: Page, ident: str, visitor: Visitor) -> Response:
    row = page.looks.find_row(ident)
    if not row.pull:
        raise UsageError("there is no pull request yet")
    judged = session_parts.read_judged(page.looks.find_project(row.project), row.pull)
    return show("judged.html", visitor, judged=judged, link=row.link)


PARTS: dict[str, Callable[[Page, str, Visitor], Response]] = {
    "screen": _show_screen,
    "pull": _show_judged,
}
"""Makers of the parts that are read here for any session, by the part's name."""
ASKED = frozenset({"diff", "unpushed", "pull"})
"""Parts that git or a forge is asked for."""

ROUTES = (
    *desk.ROUTES,
    PageRoute(f"{BELOW}session/{{ident}}", show_session, acts=False),
    PageRoute(f"{BELOW}session/{{ident}}/{{part}}", show_part, acts=False),
)
