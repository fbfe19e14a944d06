"""Terminal of a session that runs elsewhere, shown by its node's own `sm`.

That has the tmux client, in the size of the window there; nothing here knows its tmux. Its words
are foreign: they are read by their shape, and become nothing but the rows of that one terminal.
"""

from __future__ import annotations

import asyncio
from functools import partial

from anyio import to_thread
from anyio.abc import TaskGroup
from msgspec import structs

from sm.base.errors import SmError, UsageError
from sm.base.text import one_line
from sm.plugins.page.route import Page
from sm.plugins.page.terminal import wire
from sm.plugins.page.terminal.node import WHY, NodeProcess, OldError, SilentError
from sm.plugins.page.terminal.output_filter import Tamer
from sm.plugins.page.terminal.view import Seats
from sm.plugins.page.terminal.wire import Pipes, ToNode
from sm.plugins.page.terminal.words import TRY_AGAIN, BrowserWish, OverError, Tell, TerminalWord
from sm.views.place import RemotePlace, find_remote_by_id

VIEWS_THERE = 5
"""Terminals on one host that are shown at the same time. Each is a process there, and a session of
its connection, of which sshd allows ten (`MaxSessions`, sshd_config(5)): the others are for the
channel, `sm attach`, `sm logs -f` and checks."""
VERB = "terminal"
AGAIN_S = 3.0
"""Seconds between the end of one process and the next try."""


class Host:
    """Seats and door that the views of one host share.

    One at a time asks for the connection, so a silent host keeps no more than one thread waiting.
    """

    def __init__(self) -> None:
        """Begin without a viewer."""
        self.seats, self.door = Seats(VIEWS_THERE), asyncio.Lock()


class RemoteScreen:
    """A `TerminalScreen` of a session that runs elsewhere."""

    def __init__(self, page: Page, hosts: dict[str, Host], ident: str) -> None:
        """Show nothing yet. `hosts` is what all views share."""
        self.types = False
        self._page, self._hosts, self._ident = page, hosts, ident
        self._pipes: Pipes | None = None
        self._told = ""

    async def run(self, tell: Tell, tasks: TaskGroup) -> None:
        """Show it by one process after another, on whatever host it is meanwhile."""
        tasks.start_soon(self._beat)
        while True:
            there, name = await self._page.read(self._find)
            host = self._hosts.setdefault(name, Host())
            with host.seats.take() as is_free:
                if not is_free:
                    why = f"{VIEWS_THERE} terminals on '{name}' are open already"
                    raise OverError(why, TRY_AGAIN, "plain")
                why = await self._show(there, name, host, tell)
            self.types = False  # what is typed for one is not for the next
            if why != self._told:
                self._told = why
                await tell(TerminalWord("gone", f"'{name}' does not show it: {why}"))
            await asyncio.sleep(AGAIN_S)

    async def heed(self, wish: BrowserWish) -> None:
        """Pass the wish on to the node; whether the browser may do so, was checked here."""
        if wish.what != "drawn":
            self.types = wish.what == "type"
        await self._say(ToNode(wish=structs.replace(wish, csrf="")))

    async def type(self, keys: bytes) -> None:
        """Pass on keys; a client that only looks takes none."""
        await self._say(ToNode(keys=keys))

    async def _say(self, said: ToNode) -> None:
        if self._pipes:
            await self._pipes.write(said)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(wire.BEAT_S)
            await self._say(ToNode())

    def _find(self) -> tuple[RemotePlace, str]:
        """Find where the session is now, and what people call that: of a cluster, the node."""
        there = find_remote_by_id(self._page.looks.list_projects(), self._ident)
        if there is None:
            raise OverError("there is no such session any more")
        row = self._page.looks.read()[0].find(self._ident)
        return there, (row.host if row else "") or there.host

    async def _show(self, there: RemotePlace, name: str, host: Host, tell: Tell) -> str:
        """Show what its node shows until that ends; say why it has.

        Raises:
            OverError: it cannot be shown so at all.

        """
        try:
            async with host.door:
                spell = partial(spell_relay, there)
                callers = self._page.callers
                argv = await to_thread.run_sync(spell, limiter=callers, abandon_on_cancel=True)
            node = NodeProcess(argv)
        except SmError as error:
            return one_line(error.message, WHY)
        except OSError as error:
            return str(error)
        try:
            await node.greet()
            self._pipes = node.pipes
            return await self._pass_on(node, tell)
        except SilentError as error:
            return str(error)
        except OldError as error:
            raise OverError(f"'{name}' cannot show it live: {error}", what="plain") from error
        finally:
            self._pipes = None
            await node.end()

    async def _pass_on(self, node: NodeProcess, tell: Tell) -> str:
        tamer = Tamer()
        while True:
            said = await node.hear()
            if shown := tamer.tame(said.shown):
                await tell(shown)
            if said.word and said.word.what == "over":
                return one_line(said.word.why, WHY)
            if said.word and (word := clean(said.word, types=self.types)):
                self._told = ""
                await tell(word)


def spell_relay(there: RemotePlace) -> list[str]:
    """Return the command that has its node show it.

    Raises:
        SmError: the node is not reached.
        OverError: its runner has no way to do that.

    """
    project, _, issue = there.name.rpartition("#")
    try:
        return there.pipe([VERB, project, issue])
    except UsageError as error:
        raise OverError(error.message, what="plain") from error


def clean(word: TerminalWord, *, types: bool) -> TerminalWord | None:
    """Reduce a node's word to what a browser is told; None for nothing.

    Only the person says that keys are wanted, and only this server who may do what.
    """
    if word.what in ("begin", "size") and word.size:
        return TerminalWord(word.what, size=word.size, types=word.types and types)
    return TerminalWord("gone", one_line(word.why, WHY)) if word.what == "gone" else None
