"""`sm kill`: end a session by hand."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import click

from sm.base.output import say
from sm.cli.arguments import place_argument

if TYPE_CHECKING:
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession


@click.command("kill")
@place_argument
def command(place: AnySession | tuple[Project, int]) -> None:
    """End a session: by id, name or PROJECT#ISSUE, or the one of PROJECT ISSUE.

    If it works on an issue, the issue is labelled blocked. Uncommitted and unpushed work stays in
    the worktree, pushed work on its branch, and the pull request stays as it is. It prints the
    command by which the issue is worked on again.

    If sm new has begun it, its agent ends and its record is removed. What its terminal showed is
    kept for a while, as for any session: sm logs ID.

    A session may end only itself and those that it has begun.
    """
    # A session that ends itself ends the terminal that this runs in.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for line in _end(place):
            say(line)
    finally:
        signal.signal(signal.SIGHUP, before)


def _end(place: AnySession | tuple[Project, int]) -> list[str]:
    from sm.issues.act.unblock import spell_unblock
    from sm.issues.kill import kill
    from sm.personal import lifecycle
    from sm.sessions import registry
    from sm.sessions.caller import identify
    from sm.sessions.session import AdHocSession

    session = registry.load_for(*place) if isinstance(place, tuple) else place
    root = session.root
    identify(root, os.environ).check_may_end(session, registry.list_all(root, lambda _: None))
    if isinstance(session, AdHocSession):
        return [lifecycle.end(session)]
    again = spell_unblock(session.project.settings, session.issue)
    return [
        *kill(session.project, session.issue),
        f"to have the issue worked on again: {again}",
    ]
