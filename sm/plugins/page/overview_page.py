"""Overview: what needs a person, the sessions, and what has changed of both."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from sm.base.foreign import read_number
from sm.base.need import NeedKind
from sm.plugins.page.access import DeniedError, Visitor, identify
from sm.plugins.page.board_page import (
    Choice,
    Sort,
    answer_needs,
    choose_needs,
    choose_rows,
    list_hosts,
    list_kinds,
)
from sm.plugins.page.board_reader import list_changed
from sm.plugins.page.paths import BELOW, ROOT
from sm.plugins.page.renderer import find_version
from sm.plugins.page.route import Page, PageRoute, show
from sm.plugins.page.stream import ALIVE_S
from sm.views.board import Board
from sm.views.glossary import GROUPS, Group, count_groups, find_group
from sm.views.session_row import SessionRow


def _read_choice(request: Request) -> Choice:
    asked = request.query_params
    group, sort, kind = (asked.get(name, "") for name in ("group", "sort", "kind"))
    return Choice(
        words=asked.get("q", "")[:200],
        project=asked.get("project", ""),
        host=asked.get("host", ""),
        kind=kind if kind in set(NeedKind) else "",
        group=group if group in set(Group) else "",
        sort=Sort(sort) if sort in set(Sort) else Sort.NAME,
    )


async def show_overview(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with the whole overview: needs, filters, rows."""
    choice = _read_choice(request)

    def make() -> Response:
        board, position = page.looks.read()
        page.drawer.forget_others(board.rows)
        needs = answer_needs(board, page.finder.find_needed(board))
        shown, rows = choose_needs(needs, choice), choose_rows(board, choice)
        asked = request.query_params.get("need", "")
        return show(
            "overview.html",
            visitor,
            needs=shown,
            selected=next((one for one in shown if one.need.key == asked), None),
            total=len(needs),
            kinds=list_kinds(needs),
            hosts=list_hosts(board),
            sorts=SORTS,
            rows=[(find_group(row), row) for row in rows],
            shown_counts=count_groups(rows),
            **_describe(page, board, choice),
            position=position,
        )

    return await page.read(make)


async def show_changes(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with what has changed since a position: the needs, if they have, and the rows."""
    choice = _read_choice(request)
    since = read_number(request.query_params.get("since", ""))
    named = set(request.query_params.getlist("session"))
    only = request.query_params.get("only", "")

    def make() -> Response:
        board, position = page.looks.read()
        # Read last: an event that comes in between is at worst told twice, and never passed over.
        changed = {""} if since is None else list_changed(page.looks.machine, since)[0]
        changed |= named
        needs = answer_needs(board, page.finder.find_needed(board))
        shown = choose_needs(needs, choice)
        needs_shown = [one for one in shown if only in ("", one.need.session)]
        version = find_version([(one.need, one.answers) for one in needs_shown], visitor.csrf)
        chosen = [row for row in choose_rows(board, choice) if only in ("", row.id)]
        whole = "" in changed
        return show(
            "changes.html",
            visitor,
            needs=needs_shown if version != request.query_params.get("needs") else None,
            needs_version=version,
            total=len(needs),
            is_of_one=bool(only),
            rows=[(find_group(row), row) for row in chosen if whole or row.id in changed],
            order=[row.id for row in chosen] if only else list(_list_lines(chosen)),
            shown_counts=count_groups(chosen),
            **_describe(page, board, choice),
            position=position,
        )

    return await page.read(make)


def _list_lines(rows: Iterable[SessionRow]) -> Iterator[str]:
    """Yield the keys of the lines of the table: each group has a head."""
    for group, found in itertools.groupby(rows, find_group):
        yield f"group-{group}"
        yield from (row.id for row in found)


async def show_need(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with all of one need: what the agent says, and what answers it."""
    key = request.query_params.get("key", "")

    def make() -> Response:
        board, _ = page.looks.read()
        needs = answer_needs(board, page.finder.find_needed(board))
        found = next((one for one in needs if one.need.key == key), None)
        return show("need.html", visitor, one=found)

    return await page.read(make)


SORTS = {
    Sort.NAME: "name",
    Sort.STATE: "state",
    Sort.SINCE: "longest in its state",
    Sort.BEGUN: "oldest",
    Sort.CONTEXT: "fullest context",
}
"""Words for the orders of the sessions."""


def _describe(page: Page, board: Board, choice: Choice) -> dict[str, Any]:
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
    PageRoute(f"{BELOW}need", show_need, acts=False),
    PageRoute(f"{BELOW}changes", show_changes, acts=False),
    PageRoute(f"{BELOW}stream", open_stream, acts=False),
)
