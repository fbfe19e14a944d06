"""The node's end of a terminal that a page on another machine shows.

It runs as the user who was let in there. It ends when the viewers have gone, or when nothing is
heard of them any more.
"""

from __future__ import annotations

import asyncio

from anyio import create_task_group

from sm.base.issue_id import IssueId
from sm.helper.lines import WireError, decode_line
from sm.plugins.page.gone import GoneError
from sm.plugins.page.terminal import wire
from sm.plugins.page.terminal.local_screen import Askers, LocalScreen
from sm.plugins.page.terminal.wire import FromNode, Pipes, TerminalHello, ToNode
from sm.plugins.page.terminal.words import OverError, TerminalWord
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import name_session


async def relay(project: Project, issue: IssueId, source: int, sink: int) -> None:
    """Show the terminal of the issue's session to whoever is at the other end of these pipes."""
    pipes = Pipes(source, sink)
    screen = LocalScreen(lambda: _find(project, issue), Askers())
    over: OverError | None = None

    async def tell(said: TerminalWord | bytes) -> None:
        await pipes.write(FromNode(shown=said) if isinstance(said, bytes) else FromNode(word=said))

    await pipes.write(TerminalHello(wire.PROTOCOL), wire.MARK)
    try:
        async with create_task_group() as tasks:
            tasks.start_soon(screen.run, tell, tasks)
            tasks.start_soon(_beat, pipes)
            await _hear(pipes, screen)
            tasks.cancel_scope.cancel()
    except* OverError as errors:
        [over, *_] = [one for one in errors.exceptions if isinstance(one, OverError)]
    if over:
        await tell(TerminalWord("over", over.why))


def _find(project: Project, issue: IssueId) -> IssueSession:
    name = name_session(project.name, issue)
    if registry.find(project.root, name) is None:
        raise GoneError("there is no such session any more")
    return registry.load_for(project, issue)


async def _hear(pipes: Pipes, screen: LocalScreen) -> None:
    """Do what the other end says, until it says nothing any more."""
    while True:
        try:
            async with asyncio.timeout(wire.SILENT_S):
                line = await pipes.read()
            if not line:
                return
            said = decode_line(line, ToNode)
        except (TimeoutError, WireError):
            return
        if said.wish:
            await screen.heed(said.wish)
        if said.keys:
            await screen.type(said.keys)


async def _beat(pipes: Pipes) -> None:
    while True:
        await asyncio.sleep(wire.BEAT_S)
        await pipes.write(FromNode())
