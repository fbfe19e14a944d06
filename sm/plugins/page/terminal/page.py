"""The terminal of a session: live over a WebSocket, or as text."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from sm.plugins.page.access import (
    RefusedError,
    Visitor,
    check_origin,
    check_reads,
    find_origin,
    identify,
)
from sm.plugins.page.answering import Page, Way, show
from sm.plugins.page.paths import BELOW
from sm.plugins.page.terminal.view import TRY_AGAIN, OverError, Seats, View, close
from sm.views.logs import read_screen_lines

VIEWS = 24
"""Terminals that are shown at the same time; each is a process of tmux."""
LINES = 200


async def watch(page: Page, seats: Seats, socket: WebSocket) -> None:
    """Show a session's terminal to whoever may read, if it is asked for by a page of ours."""
    try:
        check_watches(page, socket)
    except RefusedError as refused:
        await socket.send_denial_response(PlainTextResponse(refused.why, refused.status))
        return
    await socket.accept()
    with seats.take() as is_free:
        if is_free:
            await View(page, seats, socket, socket.path_params["ident"]).run()
        else:
            why = f"{VIEWS} terminals are open already: close one of them"
            await close(socket, OverError(why, TRY_AGAIN))


def check_watches(page: Page, socket: WebSocket) -> None:
    """Refuse who may not read, and any page but ours: browsers let each ask for a WebSocket.

    Raises:
        RefusedError: it may not.

    """
    check_reads(identify(socket, page.entrance, page.logins))
    if not page.entrance.keys.find_brought(socket.headers.get("authorization", "")):
        check_origin(socket, find_origin(socket, page.entrance.public))


async def show_text(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with the end of the screen, as `sm tail` shows it."""
    ident = request.path_params["ident"]

    def make() -> Response:
        text = read_screen_lines(page.looks.find_session(ident), LINES)
        return show("terminal_text.html", visitor, text=text)

    return await page.ask(make)


class Watching(Struct, frozen=True):
    """The path of the WebSocket. Looking does not act; whoever types is asked at each key."""

    path: str
    acts: bool | None = False

    def open(self, page: Page) -> BaseRoute:
        """The route for Starlette."""
        return WebSocketRoute(self.path, partial(watch, page, Seats(VIEWS)))


ROUTES = (
    Watching(f"{BELOW}terminal/{{ident}}"),
    Way(f"{BELOW}terminal/{{ident}}/text", show_text, acts=False),
)
