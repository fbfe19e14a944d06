"""One browser's view of a session's terminal, for as long as its WebSocket is open.

What the terminal shows goes to the browser as bytes; a few words beside it say which size it has,
whether keys reach the agent, and why there is nothing to see.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from anyio import create_task_group
from msgspec import MsgspecError, json
from starlette.websockets import WebSocket, WebSocketDisconnect

from sm.base.decoder import decode
from sm.plugins.page.access import DeniedError, Visitor, check_acts, identify
from sm.plugins.page.route import Page
from sm.plugins.page.terminal.words import (
    LOOK,
    POLICY,
    BrowserWish,
    OverError,
    TerminalScreen,
    TerminalWord,
)

BEAT_S = 15.0
"""Seconds between two heartbeats to the browser, each with a check that it still may read."""


class Seats:
    """Seats for views, so many at a time. For one event loop."""

    def __init__(self, count: int) -> None:
        """Begin with all seats free."""
        self._free = count

    @contextlib.contextmanager
    def take(self) -> Iterator[bool]:
        """Take a seat, and give it back at the end; yields whether there was one."""
        if not self._free:
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1


class TerminalView:
    """A WebSocket that was accepted, and what it shows."""

    def __init__(self, page: Page, socket: WebSocket, screen: TerminalScreen) -> None:
        """Show nothing yet. Typing is off until the person wants it."""
        self._page, self._socket, self._screen = page, socket, screen

    async def run(self) -> None:
        """Show it until the browser goes, or there is nothing more to show."""
        over: OverError | None = None
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._screen.run, self._tell, tasks)
                tasks.start_soon(self._beat)
                await self._hear()
                tasks.cancel_scope.cancel()
        except* OverError as errors:
            [over, *_] = [one for one in errors.exceptions if isinstance(one, OverError)]
        except* WebSocketDisconnect:
            pass
        if over:
            await close(self._socket, over)

    def _visitor(self) -> Visitor:
        return identify(self._socket, self._page.entrance, self._page.logins)

    async def _tell(self, said: TerminalWord | bytes) -> None:
        if isinstance(said, bytes):
            await self._socket.send_bytes(said)
        else:
            await self._socket.send_text(json.encode(said).decode())

    async def _hear(self) -> None:
        while True:
            said = await self._socket.receive()
            if said["type"] == "websocket.disconnect":
                return
            if said.get("bytes") is not None:
                await self._type(said["bytes"])
            else:
                await self._heed(said.get("text") or "")

    async def _type(self, keys: bytes) -> None:
        """Pass on keys of a browser that still may act."""
        if self._screen.types:
            if self._visitor().may_act:
                await self._screen.type(keys)
            else:
                await self._stop_typing("this browser may not act any more: log in again")

    async def _heed(self, text: str) -> None:
        """Do what the browser says; only our own page, with a login that may act, gets to type."""
        try:
            wish = decode(text, BrowserWish)
            if wish.what == "type":
                check_acts(self._socket, self._visitor(), wish.csrf)
        except MsgspecError as error:
            raise OverError("that is no word of the page", POLICY) from error
        except DeniedError as refused:
            await self._stop_typing(refused.why)
            return
        await self._screen.heed(wish)

    async def _stop_typing(self, why: str) -> None:
        await self._tell(TerminalWord("refused", why))
        await self._screen.heed(LOOK)

    async def _beat(self) -> None:
        """Send heartbeats as long as the browser may read."""
        while True:
            await asyncio.sleep(BEAT_S)
            visitor = self._visitor()
            if not visitor.may_read:
                raise OverError("this browser may not read any more: log in again", POLICY)
            if self._screen.types and not visitor.may_act:
                await self._stop_typing("this browser may not act any more: log in again")
            await self._tell(TerminalWord("alive"))


async def close(socket: WebSocket, over: OverError) -> None:
    """Tell the browser why this ends, and end it."""
    try:
        await socket.send_text(json.encode(TerminalWord(over.what, over.why)).decode())
        await socket.close(over.code)
    except (WebSocketDisconnect, RuntimeError):
        pass  # it has gone first
