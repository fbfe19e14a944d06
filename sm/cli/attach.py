"""`sm attach`: enter a session's terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from sm.base.errors import UsageError
from sm.base.output import say
from sm.cli.arguments import place_argument

if TYPE_CHECKING:
    from sm.sessions.attach import Attachment
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession


@click.command("attach")
@place_argument
@click.option("--read-only", "-r", is_flag=True, help="Watch only: no key reaches the agent.")
def command(place: AnySession | tuple[Project, int], read_only: bool) -> None:
    """Enter the terminal of a session's agent; leave it with the tmux prefix and d.

    Name the session by id, name or PROJECT#ISSUE, or give PROJECT ISSUE.

    If the session ends while you are there, this waits for Enter. Nothing that you type for the
    agent reaches your shell.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal: sm logs shows the terminal log without one")
    if code := enter(find_way(place, read_only=read_only)):
        raise click.exceptions.Exit(code)


def enter(way: Attachment) -> int:
    """Show the terminal until the person leaves it; return the exit code."""
    from sm.adapters.foreground import run_in_foreground, swallow_typing

    if way.note:
        say(way.note, err=True)
    way.tmux.detach_at_end(way.pane.session)
    sys.stdout.flush()
    code = run_in_foreground(way.argv, way.env)
    if way.read_only:
        way.disown_keys()
    if way.has_ended():
        say(f"The terminal of '{way.pane.session}' has ended. Press Enter to leave.", err=True)
        swallow_typing(sys.stdin.fileno())
        return 0
    return int(bool(code))


def find_way(place: AnySession | tuple[Project, int], *, read_only: bool = False) -> Attachment:
    """Return how to show the terminal of the session, or of the issue's.

    Raises:
        SmError: there is none, or the person is in it.

    """
    from sm.sessions.attach import prepare_ad_hoc_attachment, prepare_attachment
    from sm.sessions.session import AdHocSession

    if isinstance(place, tuple):
        project, issue = place
    elif isinstance(place, AdHocSession):
        return prepare_ad_hoc_attachment(place, os.environ, read_only=read_only)
    else:
        project, issue = place.project, place.issue
    return prepare_attachment(project, issue, os.environ, read_only=read_only)
