"""`sm ci`: have CI run again."""

from __future__ import annotations

import click

from sm.cli.options import numbered_argument
from sm.output import say
from sm.sessions.project import Project


@click.group()
def command() -> None:
    """Have CI run again."""


@command.command()
@numbered_argument
def rerun(numbered: tuple[Project, int]) -> None:
    """Have CI run again on an issue or a pull request, at its branch's last commit.

    What it said before is forgotten; what it says now reaches the agent that waits for it. For a
    failure that was not the commit's: a machine without memory, a service that was down.
    """
    from sm.issues.ci import rerun

    project, number = numbered
    head = rerun(project, number)
    say(f"CI runs again on {head[:12]}: see sm status")
