"""`sm attach`: enter a session's terminal."""

from __future__ import annotations

import os
import sys

import click

from sm.cli.options import pass_config, project_issue
from sm.config.schema import Config, Project
from sm.errors import UsageError


@click.command("attach")
@project_issue
@click.option("--read-only", "-r", is_flag=True, help="Watch only: no key reaches the agent.")
@pass_config
def command(config: Config, project: Project, issue: int, read_only: bool) -> None:
    """Enter the terminal of ISSUE's agent; detach with the tmux prefix and d."""
    from sm.workflow.attach import attachment
    from sm.workflow.context import Context

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("attach needs a terminal: sm logs shows the transcript without one")
    way = attachment(Context(config, project), issue, os.environ, read_only=read_only)
    if way.note:
        click.echo(way.note, err=True)
    sys.stdout.flush()
    os.execvpe(way.argv[0], way.argv, way.env)  # noqa: S606 - becomes tmux, argv only
