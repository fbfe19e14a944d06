"""`sm terminal`: the node's end of a terminal that a page on another machine shows.

That machine calls it, as the user who was let in here. It ends when the viewers have gone, or when
nothing is heard of them any more.
"""

from __future__ import annotations

import asyncio
import sys

import anyio
import click

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId
from sm.cli.invocation import find_project
from sm.cli.options import load_config
from sm.helper.lines import WireError, decode_line
from sm.plugins.page.errors import GoneError
from sm.plugins.page.terminal import wire
from sm.plugins.page.terminal.local_screen import Askers, LocalScreen
from sm.plugins.page.terminal.wire import FromNode, Pipes, TerminalHello, ToNode
from sm.plugins.page.terminal.words import OverError, TerminalWord
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.paths import name_session

STDIN, STDOUT = range(2)


@click.command("terminal")
@click.argument("project")
@click.argument("issue", type=click.IntRange(min=1))
@click.pass_context
def command(ctx: click.Context, project: str, issue: IssueId) -> None:
    """Show the terminal of an issue's session by lines on stdin and stdout."""
    found = find_project(load_config(ctx), project)
    if sys.stdin.isatty() or sys.stdout.isatty():
        raise UsageError("the page of another machine calls it: here it is sm attach")
    anyio.run(relay, found, issue, STDIN, STDOUT)


async def relay(project: Project, issue: IssueId, source: int, sink: int) -> None:
    """Show the terminal of the issue's session to whoever is at the other end of these pipes."""
    pipes = Pipes(source, sink)
    screen = LocalScreen(lambda: _find(project, issue), Askers())
    over: OverError | None = None

    async def tell(said: TerminalWord | bytes) -> None:
        await pipes.write(FromNode(shown=said) if isinstance(said, bytes) else FromNode(word=said))

    await pipes.write(TerminalHello(wire.PROTOCOL), wire.MARK)
    try:
        async with anyio.create_task_group() as tasks:
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
