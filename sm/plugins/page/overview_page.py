"""Overview: what needs a person, the sessions, and what has changed of both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from sm.base.foreign import read_number
from sm.plugins.page.access import DeniedError, Visitor, identify
from sm.plugins.page.board_page import GROUPS, RowChoice, answer_needs, choose_rows, count_groups
from sm.plugins.page.board_reader import list_changed
from sm.plugins.page.paths import BELOW, ROOT
from sm.plugins.page.route import Page, PageRoute, show
from sm.plugins.page.stream import ALIVE_S
from sm.views.board import Board


def _read_choice(request: Request) -> RowChoice:
    asked = request.query_params
    return RowChoice(
        words=asked.get("q", "")[:200],
        project=asked.get("project", ""),
        group=asked.get("group", "") if asked.get("group", "") in GROUPS else "",
    )


async def show_overview(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with the whole overview: needs, filters, rows."""
    choice = _read_choice(request)

    def make() -> Response:
        board, position = page.looks.read()
        page.drawer.forget_others(board.rows)
        needs = answer_needs(board, page.finder.find_needed(board))
        return show(
            "overview.html",
            visitor,
            needs=needs,
            rows=choose_rows(board, choice),
            **_describe(page, board, choice),
            position=position,
        )

    return await page.read(make)


async def show_changes(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with what has changed since a position: all needs, and the changed rows."""
    choice = _read_choice(request)
    since = read_number(request.query_params.get("since", ""))
    named = set(request.query_params.getlist("session"))
    only = request.query_params.get("only", "")

    def make() -> Response:
        board, position = page.looks.read()
        # Read last: an event that comes in between is at worst told twice, and never passed over.
        changed = {""} if since is None else list_changed(page.looks.machine, since)[0]
        changed |= named
        limits = page.finder.find_needed(board)
        chosen = [row for row in choose_rows(board, choice) if only in ("", row.id)]
        whole = "" in changed
        return show(
            "changes.html",
            visitor,
            needs=[one for one in answer_needs(board, limits) if only in ("", one.need.session)],
            rows=[row for row in chosen if whole or row.id in changed],
            order=[row.id for row in chosen],
            **_describe(page, board, choice),
            position=position,
        )

    return await page.read(make)


def _describe(page: Page, board: Board, choice: RowChoice) -> dict[str, Any]:
    """Return what both templates have of a board beside its needs and rows."""
    return {
        "board": board,
        "counts": count_groups(board.rows),
        "groups": GROUPS,
        "choice": choice,
        "draw": page.draw,
    }


async def open_stream(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with what changes, as it changes, as long as the login counts."""
    if page.stream.is_full:
        raise DeniedError(503, "too many browsers look at this page: close some of them")
    told = request.headers.get("last-event-id") or request.query_params.get("since", "")
    words = page.stream.listen(read_number(told))
    return EventSourceResponse(_tell_readers(page, request, words), ping=ALIVE_S)


async def _tell_readers(
    page: Page, request: Request, words: AsyncIterator[ServerSentEvent]
) -> AsyncIterator[ServerSentEvent]:
    async for word in words:
        if not identify(request, page.entrance, page.logins).may_read:
            return
        yield word


ROUTES = (
    PageRoute(ROOT, show_overview, acts=False),
    PageRoute(f"{BELOW}changes", show_changes, acts=False),
    PageRoute(f"{BELOW}stream", open_stream, acts=False),
)
