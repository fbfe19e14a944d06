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
from sm.issues.reaching import Elsewhere
from sm.plugins.page import desk, session_parts, session_there
from sm.plugins.page.access import Visitor
from sm.plugins.page.answering import Page, Way, show
from sm.plugins.page.board_page import answer_needs
from sm.plugins.page.documents import list_documents
from sm.plugins.page.ended import read_ended, read_screen
from sm.plugins.page.limits import list_limits
from sm.plugins.page.patch import read_patch, read_unpushed
from sm.plugins.page.paths import BELOW
from sm.sessions.session import IssueSession
from sm.store.paths import check_name
from sm.views.board import BoardRow

PULL = "the pull request"


async def show_session(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with the page of one session."""
    ident = request.path_params["ident"]

    def make() -> Response:
        board, position = page.looks.read()
        row = board.find(ident)
        if row is None:
            return _show_ended(page, ident, visitor)
        limits = list_limits(page.looks, ident)
        named = {limit.act: limit for limit in limits}
        needs = [one for one in answer_needs(board, named) if one.need.session == ident]
        letter = offer_message(row.id, row.name)
        is_there = row.host and page.looks.find_there(ident)
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
            draw=page.draw,
            **(_gather_there(row) if is_there else _gather_here(page, row)),
        )

    return await page.read(make)


def _gather_here(page: Page, row: BoardRow) -> dict[str, Any]:
    """Gather what the page has of a session of this machine alone."""
    session = page.looks.find_session(row.id)
    return {
        "host": "",
        "told": session_parts.read_told(page.looks.machine.root, row.id),
        "messages": session_parts.list_messages(session),
        "has_branch": isinstance(session, IssueSession),
        "has_documents": session_parts.has_documents(session),
        "steering": list_steering(row, paused=session_parts.is_paused(session)),
    }


def _gather_there(row: BoardRow) -> dict[str, Any]:
    """Gather the same of a session elsewhere, without what its node is asked for."""
    inside = row.inside
    return {
        "host": row.host,
        "has_branch": True,
        "has_documents": inside is not None and inside.documents,
        "steering": list_steering(row, paused=inside is not None and inside.paused),
    }


def _show_ended(page: Page, ident: str, visitor: Visitor) -> Response:
    """Answer with the page of an ended session."""
    return show("ended.html", visitor, ident=ident, ended=read_ended(page.looks, ident))


async def show_part(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with a part of that page: one that is opened, or that has changed."""
    ident, part = request.path_params["ident"], request.path_params["part"]
    make = PARTS.get(part)
    if make is None:
        raise HTTPException(404)
    there = await page.read(partial(page.looks.find_there, ident)) if part in THERE else None
    try:
        if there:
            return await page.reach(partial(THERE[part], there, visitor))
        read = page.ask if part in ASKED else page.read
        return await read(partial(make, page, ident, visitor))
    except SmError as error:  # a part of a page that is there all the same
        return show("outcome.html", visitor, why=error.message, done=False)


def _show_story(page: Page, ident: str, visitor: Visitor) -> Response:
    told = session_parts.read_told(page.looks.machine.root, ident)
    return show("story.html", visitor, told=told)


def _show_messages(page: Page, ident: str, visitor: Visitor) -> Response:
    found = session_parts.list_messages(page.looks.find_session(ident))
    return show("messages.html", visitor, messages=found)


def _show_patch(page: Page, ident: str, visitor: Visitor) -> Response:
    return show("patch.html", visitor, patch=read_patch(_of_issue(page, ident)))


def _show_unpushed(page: Page, ident: str, visitor: Visitor) -> Response:
    head = page.looks.find_row(ident).head
    patch = read_unpushed(_of_issue(page, ident), head)
    return show("patch.html", visitor, patch=patch, lacks=PULL)


def _show_documents(page: Page, ident: str, visitor: Visitor) -> Response:
    try:
        session = page.looks.find_session(ident)
    except SmError:  # it is over, or its record is damaged
        session = None
    found = list_documents(page.looks.machine.root, check_name(ident, "session"), session)
    return show("documents.html", visitor, documents=found)


def _show_screen(page: Page, ident: str, visitor: Visitor) -> Response:
    return show("screen.html", visitor, text=read_screen(page.looks.machine.root, ident))


def _show_judged(page: Page, ident: str, visitor: Visitor) -> Response:
    row = page.looks.find_row(ident)
    if not row.pull:
        raise UsageError("there is no pull request yet")
    judged = session_parts.read_judged(page.looks.find_project(row.project), row.pull)
    return show("judged.html", visitor, judged=judged, link=row.link)


def _of_issue(page: Page, ident: str) -> IssueSession:
    session = page.looks.find_session(ident)
    if not isinstance(session, IssueSession):
        raise UsageError("it works on no issue, so it has no branch of its own")
    return session


PARTS: dict[str, Callable[[Page, str, Visitor], Response]] = {
    "story": _show_story,
    "messages": _show_messages,
    "diff": _show_patch,
    "unpushed": _show_unpushed,
    "documents": _show_documents,
    "screen": _show_screen,
    "pull": _show_judged,
}


THERE: dict[str, Callable[[Elsewhere, Visitor], Response]] = {
    "story": lambda there, visitor: show(
        "story.html", visitor, told=session_there.read_told(there)
    ),
    "messages": lambda there, visitor: show(
        "messages.html", visitor, messages=session_there.list_messages(there)
    ),
    "diff": lambda there, visitor: show(
        "patch.html", visitor, patch=session_there.read_patch(there)
    ),
    "unpushed": lambda there, visitor: show(
        "patch.html", visitor, patch=session_there.read_unpushed(there), lacks=PULL
    ),
    "documents": lambda there, visitor: show(
        "documents.html", visitor, documents=session_there.list_documents(there)
    ),
}
"""Makers of the parts of a session elsewhere, by the part's name."""
ASKED = frozenset({"diff", "unpushed", "pull"})
"""Parts that git or a forge is asked for."""

ROUTES = (
    *desk.ROUTES,
    Way(f"{BELOW}session/{{ident}}", show_session, acts=False),
    Way(f"{BELOW}session/{{ident}}/{{part}}", show_part, acts=False),
)
