"""Terminal of a session on this machine, shown by one tmux client after another.

Nothing more is read from tmux until the browser has taken what was read. So a slow browser costs no
memory and lags little: tmux leaves out what comes too late.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.abc import TaskGroup

from sm.base.errors import SmError
from sm.plugins.page.errors import GoneError
from sm.plugins.page.terminal.client import Client, Size, find_size, find_size_of
from sm.plugins.page.terminal.words import AHEAD, BrowserWish, OverError, Tell, TerminalWord
from sm.sessions.session import AnySession

FRAME_S = 0.02
"""Seconds between two pieces of tmux's output: nobody sees more than fifty pictures in a second."""
SOON_S, FOLLOW_S = 0.2, 1.0
"""Seconds from the last output to a look at the window's size, and seconds between two such looks
at least: a window of another size is drawn again."""
LOOK_S, AGAIN_S = 1.0, 10.0
"""Seconds between two looks at the agent's record, and at tmux, while there is no terminal."""
ASKERS = 4
"""Threads that ask tmux for all views: if it hangs, the rest of the page goes on."""

T = TypeVar("T")


class Askers:
    """Threads that ask tmux. For one event loop."""

    def __init__(self) -> None:
        """Begin with all of them free."""
        self._limiter = CapacityLimiter(ASKERS)

    async def ask(self, act: Callable[[], T]) -> T:
        """Ask tmux in a thread."""
        return await to_thread.run_sync(act, limiter=self._limiter, abandon_on_cancel=True)


class LocalScreen:
    """A `TerminalScreen` of a session on this machine."""

    def __init__(self, find: Callable[[], AnySession], askers: Askers) -> None:
        """Show nothing yet. `find` raises GoneError if there is no such session any more."""
        self.types = self._follows = False
        self._find, self._askers = find, askers
        self._client: Client | None = None
        self._session: AnySession | None = None
        self._sized_at = 0.0
        self._ahead, self._drawn = 0, asyncio.Event()

    async def run(self, tell: Tell, tasks: TaskGroup) -> None:
        """Show one client after another: a new one for each terminal, and to type or only look."""
        while True:
            session, size = await self._wait_for_terminal(tell)
            client = Client(session.tmux, session.name, size, types=self.types)
            self._client = client
            try:
                await tell(TerminalWord("begin", size=size, types=client.types))
                await self._pass_on(client, session, tell, tasks)
            finally:
                self._client = None
                asked = client.types != self.types
                await client.end()
            if not asked:  # what is typed for one agent is not for the next
                self.types = False
                await asyncio.sleep(SOON_S)

    async def heed(self, wish: BrowserWish) -> None:
        """Go on with a client that has the right to type, or has not; or note what was drawn."""
        if wish.what == "drawn":
            self._ahead = max(0, self._ahead - wish.bytes)
            self._drawn.set()
            return
        self.types = wish.what == "type"
        if self._client and self._client.types != self.types:
            self._client.leave()
            self._drawn.set()

    async def type(self, keys: bytes) -> None:
        """Pass on keys; a client that only looks takes none."""
        if self._client:
            await self._client.type(keys)

    async def _wait_for_terminal(self, tell: Tell) -> tuple[AnySession, Size]:
        """Wait for a terminal, and say meanwhile why there is nothing to see."""
        told = ""
        while True:
            try:
                return await self._askers.ask(self._find_terminal)
            except GoneError as error:
                raise OverError(error.message) from error
            except SmError as error:
                if error.message != told:
                    told = error.message
                    await tell(TerminalWord("gone", told))
            await self._wait_for_agent()

    def _find_terminal(self) -> tuple[AnySession, Size]:
        """Find the session, and the size of its window."""
        if self._session is None or not self._session.dir.identity.exists():
            self._session = self._find()
        session = self._session
        if session.tmux.pane(session.name) is None:
            raise SmError("Its terminal is gone. The next one will show here.")
        session.tmux.detach_at_end(session.name)
        return session, find_size(session.tmux, session.name)

    async def _wait_for_agent(self) -> None:
        before = self._stamp()
        for _ in range(round(AGAIN_S / LOOK_S)):
            await asyncio.sleep(LOOK_S)
            if self._stamp() != before:
                return

    def _stamp(self) -> int:
        """Return a number that changes with the agent's record, or when the session is over."""
        if self._session is None:
            return 0
        try:
            return os.stat(self._session.dir.agent).st_mtime_ns  # noqa: PTH116 - every second
        except OSError:
            return 0

    async def _pass_on(
        self, client: Client, session: AnySession, tell: Tell, tasks: TaskGroup
    ) -> None:
        while shown := await client.read():
            await tell(shown)
            self._ahead += len(shown)
            if not self._follows:
                self._follows = True
                tasks.start_soon(self._follow, client, session, tell)
            await asyncio.sleep(FRAME_S)
            while self._ahead > AHEAD and not client.is_leaving():
                self._drawn.clear()
                await self._drawn.wait()

    async def _follow(self, client: Client, session: AnySession, tell: Tell) -> None:
        """Give the client the window's size whenever somebody has changed that."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(SOON_S, self._sized_at + FOLLOW_S - loop.time()))
        self._follows, self._sized_at = False, loop.time()
        try:
            size = await self._askers.ask(
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
            await tell(TerminalWord("size", size=size))  # before what is drawn in it
            client.resize(size)
