"""`sm ci-run`: what a CI runner of the embedded forge is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sm.base.output import say
from sm.cli.options import project_option

if TYPE_CHECKING:
    from sm.sessions.project import Project


@click.command()
@project_option
@click.option("--locked", is_flag=True, hidden=True, help="The starter's lock was inherited.")
@click.argument("commit")
def command(project: Project, locked: bool, commit: str) -> None:
    """Run the project's CI command on COMMIT and keep the result, also where there is one."""
    from sm.adapters.forge.local.forge import open_forge

    work = project.ci_folder
    verdict = open_forge(project.settings).run_check(
        commit, project.settings.ci, work, locked=locked
    )
    if not locked:
        say(verdict.state if verdict else "pending")
