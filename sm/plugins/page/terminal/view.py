"""One browser's view of a session's terminal, for as long as its WebSocket is open.

What tmux shows goes to the browser as bytes; a few words beside it say which size it has, whether
keys reach the agent, and why there is nothing to see. Nothing is read from tmux that the browser
has not taken yet, so a slow one costs no memory and lags little: what it is too late for, tmux
leaves out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Literal, TypeVar

from anyio import CapacityLimiter, create_task_group, to_thread
from anyio.abc import TaskGroup
from msgspec import Meta, MsgspecError, Struct, json
from starlette.websockets import WebSocket, WebSocketDisconnect

from sm.base.errors import SmError
from sm.messages.presence import remember_hands
from sm.plugins.page.access import RefusedError, Visitor, check_acts, identify
from sm.plugins.page.answering import Page
from sm.plugins.page.looks import GoneError
from sm.plugins.page.terminal.client import Client, Size, find_size, find_size_of
from sm.sessions.session import AnySession

FRAME_S = 0.02
"""Between two pieces of what tmux shows: nobody sees more than fifty pictures in a second."""
AHEAD = 128 * 1024
"""Bytes that a browser may have got and not yet drawn, as it says itself. Without that bound, the
system would keep megabytes for it, which is a minute on a slow line."""
SOON_S, FOLLOW_S = 0.2, 1.0
"""So long after something was shown the window's size is looked at, and so often at most: a window
of another size is drawn anew."""
BEAT_S = 15.0
"""So often the browser hears that we are there, and it is looked whether it still may read."""
LOOK_S, AGAIN_S = 1.0, 10.0
"""While there is no terminal: between two looks at the agent's record, and between two at tmux."""
ASKERS = 4
"""Threads that ask tmux for all views: if it hangs, the rest of the page does not."""

TRY_AGAIN, POLICY, DONE = 1013, 1008, 1000
"""Codes with which a WebSocket is closed (RFC 6455, 7.4, and the registry of IANA)."""

T = TypeVar("T")


class Word(Struct, frozen=True, omit_defaults=True):
    """What the browser is told beside the bytes.

    `begin`: forget what was shown, a client of this size begins; `types`: its keys reach the agent.
    `size`: it has another size from now on. `gone`: there is nothing to see, and why; it is waited
    for. `refused`: why keys do not reach the agent. `over`: why this ends. `alive`: nothing.
    """

    what: Literal["begin", "size", "gone", "refused", "over", "alive"]
    why: str = ""
    size: Size | None = None
    types: bool = False


class Wish(Struct, frozen=True):
    """What the browser says.

    `type`: it wants to type straight into the terminal; `look`: only to look again. `drawn`: so
    many more `bytes` are on its screen.
    """

    what: Literal["type", "look", "drawn"]
    pledge: str = ""
    bytes: Annotated[int, Meta(ge=0, le=AHEAD)] = 0


class OverError(Exception):
    """There is nothing more to show; the browser is told why."""

    def __init__(self, why: str, code: int = DONE) -> None:
        """Keep both."""
        super().__init__(why)
        self.why, self.code = why, code


class Seats:
    """Room for so many views, and the threads that ask tmux for them. For one event loop."""

    def __init__(self, count: int) -> None:
        """All are free."""
        self._free, self._askers = count, CapacityLimiter(ASKERS)

    @contextlib.contextmanager
    def take(self) -> Iterator[bool]:
        """Whether there is room for one more, which is given back."""
        if not self._free:
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1

    async def ask(self, act: Callable[[], T]) -> T:
        """Ask tmux in a thread."""
        return await to_thread.run_sync(act, limiter=self._askers, abandon_on_cancel=True)


class View:
    """A WebSocket that was accepted, and the session that it shows."""

    def __init__(self, page: Page, seats: Seats, socket: WebSocket, ident: str) -> None:
        """Show nothing yet. Typing is off until the person wants it."""
        self._page, self._seats, self._socket, self._ident = page, seats, socket, ident
        self._types = self._follows = False
        self._client: Client | None = None
        self._session: AnySession | None = None
        self._sized_at = 0.0
        self._ahead, self._drawn = 0, asyncio.Event()

    async def run(self) -> None:
        """Show it until the browser goes, or there is nothing more to show."""
        over: OverError | None = None
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._show, tasks)
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

    async def _tell(self, word: Word) -> None:
        await self._socket.send_text(json.encode(word).decode())

    # From the browser

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
        if self._client and self._client.types:
            if self._visitor().may_act:
                await self._client.type(keys)
            else:
                await self._stop_typing("this browser may not act any more: log in again")

    async def _heed(self, text: str) -> None:
        """Do what it says; who wants to type has to be our own page, of a login that may act."""
        try:
            wish = json.decode(text, type=Wish)
            if wish.what == "type":
                check_acts(self._socket, self._visitor(), wish.pledge)
        except MsgspecError as error:
            raise OverError("that is no word of the page", POLICY) from error
        except RefusedError as refused:
            await self._stop_typing(refused.why)
            return
        if wish.what == "drawn":
            self._ahead = max(0, self._ahead - wish.bytes)
            self._drawn.set()
        else:
            self._turn(types=wish.what == "type")

    async def _stop_typing(self, why: str) -> None:
        await self._tell(Word("refused", why))
        self._turn(types=False)

    def _turn(self, *, types: bool) -> None:
        """Go on with a client that has the right to type, or has not."""
        self._types = types
        if self._client and self._client.types != types:
            self._client.leave()
            self._drawn.set()

    async def _beat(self) -> None:
        """Say now and then that we are there, for as long as the browser may read."""
        while True:
            await asyncio.sleep(BEAT_S)
            visitor = self._visitor()
            if not visitor.may_read:
                raise OverError("this browser may not read any more: log in again", POLICY)
            if self._types and not visitor.may_act:
                await self._stop_typing("this browser may not act any more: log in again")
            await self._tell(Word("alive"))

    # To the browser

    async def _show(self, tasks: TaskGroup) -> None:
        """Show one client after another: a new one for each terminal, and to type or only look."""
        while True:
            session, size = await self._wait_for_terminal()
            client = Client(session.tmux, session.name, size, types=self._types)
            self._client = client
            try:
                await self._tell(Word("begin", size=size, types=client.types))
                await self._pass_on(client, session, tasks)
            finally:
                self._client = None
                asked = client.types != self._types
                await client.end()
            if not asked:  # what is typed for one agent is not for the next
                self._types = False
                await asyncio.sleep(SOON_S)

    async def _wait_for_terminal(self) -> tuple[AnySession, Size]:
        """Say why there is nothing to see while there is no terminal."""
        told = ""
        while True:
            try:
                return await self._seats.ask(self._find_terminal)
            except GoneError as error:
                raise OverError(error.message) from error
            except SmError as error:
                if error.message != told:
                    told = error.message
                    await self._tell(Word("gone", told))
            await self._wait_for_agent()

    def _find_terminal(self) -> tuple[AnySession, Size]:
        """The session, and the size of its window; what is known of a person there is kept."""
        if self._session is None or not self._session.dir.identity.exists():
            self._session = self._page.looks.find_session(self._ident)
        session = self._session
        if session.tmux.pane(session.name) is None:
            raise SmError("Its terminal is gone. The next one will show here.")
        remember_hands(session)
        session.tmux.detach_at_end(session.name)
        return session, find_size(session.tmux, session.name)

    async def _wait_for_agent(self) -> None:
        before = self._stamp()
        for _ in range(round(AGAIN_S / LOOK_S)):
            await asyncio.sleep(LOOK_S)
            if self._stamp() != before:
                return

    def _stamp(self) -> int:
        """A number that changes with the agent's record, or when the session is over."""
        if self._session is None:
            return 0
        try:
            return os.stat(self._session.dir.agent).st_mtime_ns  # noqa: PTH116 - every second
        except OSError:
            return 0

    async def _pass_on(self, client: Client, session: AnySession, tasks: TaskGroup) -> None:
        while shown := await client.read():
            await self._socket.send_bytes(shown)
            self._ahead += len(shown)
            if not self._follows:
                self._follows = True
                tasks.start_soon(self._follow, client, session)
            await asyncio.sleep(FRAME_S)
            while self._ahead > AHEAD and not client.is_leaving():
                self._drawn.clear()
                await self._drawn.wait()

    async def _follow(self, client: Client, session: AnySession) -> None:
        """Give the client the window's size, if somebody has changed that."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(SOON_S, self._sized_at + FOLLOW_S - loop.time()))
        self._follows, self._sized_at = False, loop.time()
        try:
            size = await self._seats.ask(
                partial(find_size_of, session.tmux, client.tty, session.name)
            )
        except SmError:
            return  # its end is seen by itself
        if client.is_leaving() or client is not self._client:
            return
        if size is None:  # by keys of tmux it was moved to another session
            client.leave()
            self._drawn.set()
        elif size != client.size:
            await self._tell(Word("size", size=size))  # before what is drawn in it
            client.resize(size)


async def close(socket: WebSocket, over: OverError) -> None:
    """Tell the browser why this ends, and end it."""
    try:
        await socket.send_text(json.encode(Word("over", over.why)).decode())
        await socket.close(over.code)
    except (WebSocketDisconnect, RuntimeError):
        pass  # it has gone first
