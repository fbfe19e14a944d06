"""`sm kill`: end a session by hand."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sm.cli.options import load_config, place_argument
from sm.output import say

if TYPE_CHECKING:
    from sm.config.schema import Project
    from sm.session.registry import AnySession


@click.command("kill")
@place_argument
@click.pass_context
def command(click_context: click.Context, place: AnySession | tuple[Project, int]) -> None:
    """End a session: by id, name or PROJECT#ISSUE, or the one of PROJECT ISSUE.

    One that works on an issue: the issue is labelled blocked; uncommitted or unpushed work stays
    in its worktree, the branch and the pull request stay as they are. Take the label off, and
    give the issue the backlog label, to have it worked on again.

    One that was begun by sm new: its agent ends, its record and its transcript go.

    A session may end only itself and those that it has begun.
    """
    # A session that ends itself ends the terminal that this runs in.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for line in _end(click_context, place):
        say(line)


def _end(click_context: click.Context, place: AnySession | tuple[Project, int]) -> Iterator[str]:
    from sm.session import registry
    from sm.session.caller import identify
    from sm.session.registry import AdHocSession
    from sm.store.paths import session_name
    from sm.workflow import adhoc, host
    from sm.workflow.context import Context
    from sm.workflow.kill import kill

    if isinstance(place, tuple):
        ctx = Context(load_config(click_context), place[0])
        session = registry.load(ctx.root, session_name(place[0].name, place[1]))
    else:
        session = place
    root = session.root
    identify(root, os.environ).check_may_end(session, registry.all(root, lambda _: None))
    if isinstance(session, AdHocSession):
        yield from adhoc.end(host.of(session), session)
    elif isinstance(place, tuple):
        yield from kill(ctx, session.issue)
    else:
        yield from kill(host.context_of(session), session.issue)
