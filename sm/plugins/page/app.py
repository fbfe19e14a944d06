"""The application behind the page: what each path answers. Reading and acting run in threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from anyio import CapacityLimiter, fail_after, to_thread
from msgspec import Struct
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from sm.base.errors import SmError, UsageError
from sm.base.foreign import read_number
from sm.plugins.http.lanes import Lanes
from sm.plugins.http.sites import Entrance
from sm.plugins.page import session_parts
from sm.plugins.page.access import (
    RefusedError,
    Visitor,
    check_acts,
    check_may_act,
    check_origin,
    check_reads,
    identify,
    spell_cookie,
)
from sm.plugins.page.acting import Wish, carry_out
from sm.plugins.page.board_page import (
    GROUPS,
    Choice,
    answer_needs,
    choose_rows,
    count_groups,
    find_group,
)
from sm.plugins.page.logins import Logins
from sm.plugins.page.looks import GoneError, Looks, list_changed
from sm.plugins.page.offers import Act, list_steering, offer_merge, offer_message
from sm.plugins.page.rendering import RowDrawer, render
from sm.plugins.page.site import BELOW, LOGIN, ROOT
from sm.plugins.page.stream import ALIVE_S, Stream
from sm.sessions.machine import Machine
from sm.sessions.session import IssueSession
from sm.views.board import BoardRow

STATIC = Path(__file__).parent / "static"
FORM_LIMIT = 2 * 1024 * 1024
"""Bytes of a form: a message of the longest kind, escaped."""
ACT_S = 60.0
"""After so long a person is told that it goes on without an answer."""
READERS = 4
"""Threads that read at the same time."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With 'no-referrer' a browser would call the origin of our own forms 'null'.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

T = TypeVar("T")


class Page(Struct, frozen=True):
    """What the answers are made of."""

    looks: Looks
    logins: Logins
    entrance: Entrance
    stream: Stream
    lanes: Lanes
    drawer: RowDrawer
    readers: CapacityLimiter

    def draw(self, row: BoardRow) -> str:
        """Return the HTML of a row."""
        return self.drawer.draw(row, find_group(row))

    async def read(self, act: Callable[[], T]) -> T:
        """Read in a thread."""
        return await to_thread.run_sync(act, limiter=self.readers)


def make_page(machine: Machine, entrance: Entrance) -> ASGIApp:
    """Make the application."""
    looks = Looks(machine)
    file = machine.root.plugins / "page" / "logins.json"
    page = Page(
        looks,
        Logins(file, entrance.token, entrance.key),
        entrance,
        Stream(looks),
        Lanes(4, 16),
        RowDrawer(),
        CapacityLimiter(READERS),
    )

    def route(path: str, answer: Answer, *methods: str, known: bool = True) -> Route:
        return Route(path, partial(_guard, page, answer, known), methods=methods or ("GET",))

    return Starlette(
        routes=[
            route(ROOT, show_overview),
            route(f"{BELOW}changes", show_changes),
            route(f"{BELOW}stream", open_stream),
            route(f"{BELOW}session/{{ident}}", show_session),
            route(f"{BELOW}session/{{ident}}/{{part}}", show_part),
            route(f"{BELOW}act", act, "POST"),
            route(LOGIN, show_login, known=False),
            route(LOGIN, log_in, "POST", known=False),
            route(f"{BELOW}logout", log_out, "POST"),
            route(f"{BELOW}invite", invite, "POST"),
            Route(f"{BELOW}static/{{path:path}}", _Static(directory=STATIC)),
        ],
        exception_handlers={HTTPException: _show_missing},
    )


class _Static(StaticFiles):
    """Our own files, which change only with the program."""

    async def get_response(self, path: str, scope: Any) -> Response:
        response = await super().get_response(scope["path_params"]["path"], scope)
        response.headers.update(HEADERS | {"Cache-Control": "no-cache"})
        return response


Answer = Callable[[Page, Request, Visitor], Awaitable[Response]]


async def _guard(page: Page, answer: Answer, known: bool, request: Request) -> Response:
    """Have it answered for whoever may read, and say what is wrong otherwise."""
    visitor = identify(request, page.entrance, page.logins)
    try:
        if known:
            check_reads(visitor)
        response = await answer(page, request, visitor)
    except RefusedError as refused:
        response = _show_problem(request, visitor, refused.status, refused.why)
    except SmError as error:
        status = 404 if isinstance(error, GoneError) else 409
        response = _show_problem(request, visitor, status, error.message)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _is_fragment(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def _show(template: str, visitor: Visitor, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(render(template, visitor=visitor, **values), status)


def _show_problem(request: Request, visitor: Visitor, status: int, why: str) -> Response:
    template = "outcome.html" if _is_fragment(request) else "problem.html"
    # htmx shows an answer of status 200 alone; the words say what went wrong.
    shown = 200 if _is_fragment(request) and request.method == "POST" else status
    return _show(template, visitor, shown, why=why, done=False)


def _show_missing(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    nobody = Visitor(may_read=False, may_act=False)
    return HTMLResponse(
        render("problem.html", visitor=nobody, why="There is nothing here."),
        error.status_code,
        HEADERS,
    )


# The overview


def _read_choice(request: Request) -> Choice:
    asked = request.query_params
    return Choice(
        words=asked.get("q", "")[:200],
        project=asked.get("project", ""),
        group=asked.get("group", "") if asked.get("group", "") in GROUPS else "",
    )


async def show_overview(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with all of it: needs, filters, rows."""
    choice = _read_choice(request)

    def make() -> Response:
        board, position = page.looks.read()
        page.drawer.forget_others(board.rows)
        return _show(
            "overview.html",
            visitor,
            board=board,
            needs=answer_needs(board),
            rows=choose_rows(board, choice),
            counts=count_groups(board.rows),
            groups=GROUPS,
            choice=choice,
            position=position,
            draw=page.draw,
        )

    return await page.read(make)


async def show_changes(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with what has changed since a position: all needs, and those rows."""
    choice = _read_choice(request)
    since = read_number(request.query_params.get("since", ""))
    named = set(request.query_params.getlist("session"))
    only = request.query_params.get("only", "")

    def make() -> Response:
        changed = {""} if since is None else list_changed(page.looks.machine, since)[0]
        changed |= named
        board, position = page.looks.read()
        chosen = [row for row in choose_rows(board, choice) if only in ("", row.id)]
        whole = "" in changed
        return _show(
            "changes.html",
            visitor,
            board=board,
            needs=[one for one in answer_needs(board) if only in ("", one.need.session)],
            rows=[row for row in chosen if whole or row.id in changed],
            order=[row.id for row in chosen],
            counts=count_groups(board.rows),
            groups=GROUPS,
            choice=choice,
            position=position,
            draw=page.draw,
        )

    return await page.read(make)


async def open_stream(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with what changes, as it changes."""
    told = request.headers.get("last-event-id") or request.query_params.get("since", "")
    return EventSourceResponse(page.stream.listen(read_number(told)), ping=ALIVE_S)


# One session


async def show_session(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with the page of one session."""
    ident = request.path_params["ident"]

    def make() -> Response:
        board, position = page.looks.read()
        row = board.find(ident)
        if row is None:
            return _show_ended(page, ident, visitor)
        session = page.looks.find_session(ident)
        needs = [one for one in answer_needs(board) if one.need.session == ident]
        return _show(
            "session.html",
            visitor,
            row=row,
            needs=needs,
            told=session_parts.read_told(page.looks.machine.root, ident),
            messages=session_parts.list_messages(session),
            document=session_parts.read_document(session),
            letter=offer_message(row.id, row.name),
            steering=list_steering(row, paused=session_parts.is_paused(session)),
            has_branch=isinstance(session, IssueSession),
            position=position,
            draw=page.draw,
        )

    return await page.read(make)


def _show_ended(page: Page, ident: str, visitor: Visitor) -> Response:
    """The story of a session that is over, which the journal keeps."""
    told = session_parts.read_told(page.looks.machine.root, ident)
    if told is None:
        raise GoneError("there is no such session any more")
    return _show("ended.html", visitor, ident=ident, told=told)


async def show_part(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with a part of that page: one that is opened, or that has changed."""
    ident, part = request.path_params["ident"], request.path_params["part"]
    make = PARTS.get(part)
    if make is None:
        raise HTTPException(404)
    try:
        return await page.read(partial(make, page, ident, visitor))
    except SmError as error:  # a part of a page that is there all the same
        return _show("outcome.html", visitor, why=error.message, done=False)


def _show_story(page: Page, ident: str, visitor: Visitor) -> Response:
    told = session_parts.read_told(page.looks.machine.root, ident)
    return _show("story.html", visitor, told=told)


def _show_messages(page: Page, ident: str, visitor: Visitor) -> Response:
    found = session_parts.list_messages(page.looks.find_session(ident))
    return _show("messages.html", visitor, messages=found)


def _show_patch(page: Page, ident: str, visitor: Visitor) -> Response:
    patch = session_parts.read_patch(_of_issue(page, ident))
    return _show("patch.html", visitor, patch=patch)


def _show_judged(page: Page, ident: str, visitor: Visitor) -> Response:
    row = page.looks.find_row(ident)
    if not row.pull:
        raise UsageError("there is no pull request yet")
    judged = session_parts.read_judged(_of_issue(page, ident), row.pull)
    merge = offer_merge(row.project, row.pull, judged.pull.head)
    return _show("judged.html", visitor, judged=judged, merge=merge, link=row.link)


def _of_issue(page: Page, ident: str) -> IssueSession:
    session = page.looks.find_session(ident)
    if not isinstance(session, IssueSession):
        raise UsageError("it works on no issue, so it has no branch of its own")
    return session


PARTS: dict[str, Callable[[Page, str, Visitor], Response]] = {
    "story": _show_story,
    "messages": _show_messages,
    "diff": _show_patch,
    "pull": _show_judged,
}


# Acting


async def _read_form(request: Request) -> dict[str, str]:
    """The fields of a form, each once.

    Raises:
        RefusedError: it is no form, or too large.

    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise RefusedError(415, "send a form")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_LIMIT:
            raise RefusedError(413, "that is too long")
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise RefusedError(400, "that is no form") from error
    return {name: values[0] for name, values in fields.items()}


async def act(page: Page, request: Request, visitor: Visitor) -> Response:
    """Do what a form asks for, and say what came of it."""
    check_may_act(visitor)
    fields = await _read_form(request)
    check_acts(request, visitor, fields.get("pledge", ""))
    wish = _read_wish(fields)
    try:
        with fail_after(ACT_S):
            place = await page.lanes.enter(wish.session or f"{wish.project}#{wish.number}")
            said = await place.run(partial(carry_out, page.looks, wish))
    except TimeoutError:
        why = f"not done after {ACT_S:g} s: it may still be carried out"
        raise RefusedError(503, why) from None
    finally:
        page.looks.spoil()
    template = "outcome.html" if _is_fragment(request) else "problem.html"
    answer = _show(template, visitor, why=said, done=True)
    answer.headers["HX-Trigger"] = "sm-acted"
    return answer


def _read_wish(fields: dict[str, str]) -> Wish:
    try:
        asked = Act(fields.get("act", ""))
    except ValueError as error:
        raise RefusedError(400, "that cannot be done here") from error
    return Wish(
        act=asked,
        session=fields.get("session", ""),
        project=fields.get("project", ""),
        number=read_number(fields.get("number", "")) or 0,
        head=fields.get("head", ""),
        text=fields.get("text", "").replace("\r\n", "\n"),
    )


# Logging in


async def show_login(_page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with a form: that a link is looked at, by a preview for instance, uses up nothing."""
    return _show("login.html", visitor, key=request.query_params.get("key", "")[:200], why="")


async def log_in(page: Page, request: Request, visitor: Visitor) -> Response:
    """Let a browser in that brings the key of a link, or the token."""
    fields = await _read_form(request)
    check_origin(request)
    if not page.entrance.loopback:
        raise RefusedError(403, "from another machine a browser may only read: come by ssh -L")
    browser = page.logins.log_in(fields.get("key", "").strip())
    if not browser:
        why = "That link was used already, or is too old. Call sm serve --open for a new one."
        return _show("login.html", visitor, 403, key="", why=why)
    return RedirectResponse(ROOT, 303, {"Set-Cookie": spell_cookie(browser)})


async def log_out(page: Page, request: Request, visitor: Visitor) -> Response:
    """Forget the browser."""
    check_may_act(visitor)
    fields = await _read_form(request)
    check_acts(request, visitor, fields.get("pledge", ""))
    page.logins.log_out(visitor.browser)
    return RedirectResponse(ROOT, 303, {"Set-Cookie": spell_cookie("")})


async def invite(page: Page, request: Request, visitor: Visitor) -> Response:
    """Make a link for one more browser."""
    check_may_act(visitor)
    fields = await _read_form(request)
    check_acts(request, visitor, fields.get("pledge", ""))
    link = f"{request.url.scheme}://{request.headers['host']}{LOGIN}?key={page.logins.make_key()}"
    return _show("invite.html", visitor, link=link)
