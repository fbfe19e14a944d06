"""Parts of every page's answer: who asks, what is read, and how it is shown.

A module that answers paths lists them as its `ROUTES`; `app` joins the lists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qs

from anyio import CapacityLimiter, to_thread
from msgspec import Struct, json
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from sm.adapters.forge.errors import HeadMovedError
from sm.base.errors import SmError
from sm.plugins.page.access import DeniedError, Visitor, check_may_act, check_reads, identify
from sm.plugins.page.board_reader import BoardReader, PageFinder
from sm.plugins.page.changes.highlighter import Highlighter
from sm.plugins.page.changes.shown import ChangeStore
from sm.plugins.page.errors import GoneError
from sm.plugins.page.logins import Logins
from sm.plugins.page.numbers_desk import NumbersDesk
from sm.plugins.page.renderer import RowDrawer, render
from sm.plugins.page.stream import Stream
from sm.views.glossary import find_group
from sm.views.place import Place
from sm.views.session_row import SessionRow
from sm.web.sites import Entrance
from sm.web.worker_pools import WorkerPools

FORM_LIMIT = 2 * 1024 * 1024
"""Bytes of a form: a message of the longest kind, escaped."""
FORM_S = 10.0
"""Time that a form may take to arrive, in seconds."""
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
    """Objects that the answers are made of."""

    looks: BoardReader
    logins: Logins
    entrance: Entrance
    stream: Stream
    pools: WorkerPools
    drawer: RowDrawer
    readers: CapacityLimiter
    askers: CapacityLimiter
    callers: CapacityLimiter
    numbers: NumbersDesk
    changes: ChangeStore
    highlighter: Highlighter
    clerks: CapacityLimiter

    def draw(self, row: SessionRow) -> str:
        """Return the HTML of a row."""
        return self.drawer.draw(row, find_group(row))

    @property
    def finder(self) -> PageFinder:
        """Lookups by what the page has read."""
        return PageFinder(self.looks)

    async def read(self, act: Callable[[], T]) -> T:
        """Read in a thread what is on this machine."""
        return await to_thread.run_sync(act, limiter=self.readers)

    async def ask(self, act: Callable[[], T]) -> T:
        """Ask a forge, git or tmux in a thread: however slow they are, the rest is read."""
        return await to_thread.run_sync(act, limiter=self.askers)

    async def note(self, act: Callable[[], T]) -> T:
        """Change the logins in a thread: another server may have their file for a while."""
        return await to_thread.run_sync(act, limiter=self.clerks)

    async def reach(self, act: Callable[[], T]) -> T:
        """Ask a node in a thread of its own kind: a silent node holds up only such threads."""
        return await to_thread.run_sync(act, limiter=self.callers)

    async def visit(self, ident: str, act: Callable[[Place], T], *, asks: bool = False) -> T:
        """Read in a thread what is at a session's place; `asks`: git or tmux is asked for it."""
        place = await self.read(partial(self.finder.find_place, ident))
        read = self.reach if place.host else self.ask if asks else self.read
        return await read(partial(act, place))


Answer = Callable[[Page, Request, Visitor], Awaitable[Response]]


class PageRoute(Struct, frozen=True):
    """A path, and the function that answers it; `readers`: only for those who may read.

    `acts`: only for those who may act. None: not declared, so all but GET acts.
    """

    path: str
    answer: Answer
    methods: tuple[str, ...] = ("GET",)
    readers: bool = True
    acts: bool | None = None

    def open(self, page: Page) -> BaseRoute:
        """The route for Starlette."""
        return Route(self.path, partial(_guard, page, self), methods=self.methods)


async def _guard(page: Page, way: PageRoute, request: Request) -> Response:
    """Answer whoever may read, and say what is wrong otherwise."""
    visitor = identify(request, page.entrance, page.logins)
    try:
        if way.readers:
            check_reads(visitor)
        if way.acts is True or (way.acts is None and way.methods != ("GET",)):
            check_may_act(visitor)
        response = await way.answer(page, request, visitor)
    except DeniedError as refused:
        response = show_problem(request, visitor, refused.status, refused.why)
    except SmError as error:
        status = 404 if isinstance(error, GoneError) else 409
        response = show_problem(request, visitor, status, error.message)
        if isinstance(error, HeadMovedError):
            response.headers["HX-Trigger"] = json.encode({"sm-moved": error.news}).decode()
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def is_fragment(request: Request) -> bool:
    """Say whether htmx asks, which puts the answer into the page."""
    return request.headers.get("hx-request") == "true"


def show(template: str, visitor: Visitor, status: int = 200, **values: Any) -> HTMLResponse:
    """Answer with a template."""
    return HTMLResponse(render(template, visitor=visitor, **values), status)


def show_problem(request: Request, visitor: Visitor, status: int, why: str) -> Response:
    """Answer with what is wrong."""
    template = "outcome.html" if is_fragment(request) else "problem.html"
    # htmx shows an answer of status 200 alone; the words say what went wrong.
    shown = 200 if is_fragment(request) and request.method == "POST" else status
    return show(template, visitor, shown, why=why, done=False, missing=status == 404)


async def read_form(request: Request, limit: int = FORM_LIMIT) -> dict[str, str]:
    """Return the fields of a form of at most `limit` bytes, each once.

    Raises:
        RefusedError: it is no form, too large, or does not arrive in time.

    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise DeniedError(415, "send a form")
    body = b""
    try:
        async with asyncio.timeout(FORM_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise DeniedError(413, "that is too long")
    except TimeoutError as error:
        raise DeniedError(408, f"the form did not arrive in {FORM_S:g} s") from error
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise DeniedError(400, "that is no form") from error
    return {name: values[0] for name, values in fields.items()}
