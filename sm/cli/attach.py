"""`sm attach`: enter a session's terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId
from sm.cli.arguments import place_argument

if TYPE_CHECKING:
    from sm.sessions.project import Project
    from sm.sessions.session import AnySession


def check_terminal() -> None:
    """Refuse to attach where no person types.

    Raises:
        UsageError: input or output is no terminal.

    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal: sm logs shows the terminal log without one")


@click.command("attach")
@place_argument
@click.option("--read-only", "-r", is_flag=True, help="Watch only: no key reaches the agent.")
def command(place: AnySession | tuple[Project, IssueId], read_only: bool) -> None:
    """Enter the terminal of a session's agent; leave it with the tmux prefix and d.

    Name the session by id, name or PROJECT#ISSUE, or give PROJECT ISSUE.

    If the session ends while you are there, this waits for Enter. Nothing that you type for the
    agent reaches your shell.
    """
    check_terminal()
    from sm.sessions.attach import enter, find_way

    if code := enter(find_way(place, read_only=read_only)):
        raise click.exceptions.Exit(code)
