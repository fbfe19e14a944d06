"""Page of a session's terminal: live over a WebSocket, or as text."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from sm.base.errors import SmError
from sm.plugins.page.access import (
    DeniedError,
    Visitor,
    check_origin,
    check_reads,
    find_origin,
    identify,
)
from sm.plugins.page.errors import GoneError
from sm.plugins.page.paths import BELOW
from sm.plugins.page.route import Page, PageRoute, show
from sm.plugins.page.terminal.local_screen import Askers, LocalScreen
from sm.plugins.page.terminal.remote_screen import Host, RemoteScreen
from sm.plugins.page.terminal.view import Seats, TerminalView, close
from sm.plugins.page.terminal.words import TRY_AGAIN, OverError, TerminalScreen

VIEWS = 24
"""Terminals that are shown at the same time; each is a process of tmux, here or on its host."""
LINES = 200


class Shared:
    """State that all views of a server share. For one event loop."""

    def __init__(self) -> None:
        """Begin without a viewer."""
        self.seats, self.askers, self.hosts = Seats(VIEWS), Askers(), dict[str, Host]()


async def watch(page: Page, shared: Shared, socket: WebSocket) -> None:
    """Show a session's terminal to whoever may read, if it is asked for by a page of ours."""
    try:
        check_watches(page, socket)
    except DeniedError as refused:
        await socket.send_denial_response(PlainTextResponse(refused.why, refused.status))
        return
    await socket.accept()
    ident = socket.path_params["ident"]
    with shared.seats.take() as is_free:
        if is_free:
            place = await page.read(partial(page.finder.find_place, ident))
            screen: TerminalScreen = (
                RemoteScreen(page, shared.hosts, ident)
                if place.host
                else LocalScreen(partial(page.looks.find_session, ident), shared.askers)
            )
            await TerminalView(page, socket, screen).run()
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
    try:
        text = await page.visit(ident, lambda place: place.read_screen(LINES), asks=True)
    except GoneError:
        raise
    except SmError as error:  # its place says so, and it may be asked again
        return show("terminal_text.html", visitor, text="", why=error.message)
    return show("terminal_text.html", visitor, text=text, why="")


class Watching(Struct, frozen=True):
    """Path of the WebSocket. Looking does not act; the right to type is checked at each key."""

    path: str
    acts: bool | None = False

    def open(self, page: Page) -> BaseRoute:
        """The route for Starlette."""
        return WebSocketRoute(self.path, partial(watch, page, Shared()))


ROUTES = (
    Watching(f"{BELOW}terminal/{{ident}}"),
    PageRoute(f"{BELOW}terminal/{{ident}}/text", show_text, acts=False),
)
