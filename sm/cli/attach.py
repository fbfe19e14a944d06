"""`sm attach`: enter a session's terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from sm.cli.arguments import place_argument
from sm.errors import UsageError
from sm.output import say

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
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal: sm logs shows the terminal log without one")
    way = _way(place, read_only)
    if way.note:
        say(way.note, err=True)
    sys.stdout.flush()
    os.execvpe(way.argv[0], way.argv, way.env)  # noqa: S606 - becomes tmux, argv only


def _way(place: AnySession | tuple[Project, int], read_only: bool) -> Attachment:
    from sm.sessions.attach import prepare_ad_hoc_attachment, prepare_attachment
    from sm.sessions.session import AdHocSession

    if isinstance(place, tuple):
        project, issue = place
    elif isinstance(place, AdHocSession):
        return prepare_ad_hoc_attachment(place, os.environ, read_only=read_only)
    else:
        project, issue = place.project, place.issue
    return prepare_attachment(project, issue, os.environ, read_only=read_only)
