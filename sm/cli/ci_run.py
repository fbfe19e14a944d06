"""`sm ci-run`: what a CI runner of the embedded forge is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sm.cli.options import pass_config, project_option
from sm.output import say
from sm.store.paths import Root
from sm.store.root_check import check_root

if TYPE_CHECKING:
    from sm.config.schema import Config, ProjectSettings


@click.command()
@project_option
@click.option("--locked", is_flag=True, hidden=True, help="The starter's lock was inherited.")
@click.argument("commit")
@pass_config
def command(config: Config, project: ProjectSettings, locked: bool, commit: str) -> None:
    """Run the project's CI command on COMMIT and keep the result, also where there is one."""
    from sm.adapters.forge.local.forge import open_forge

    work = check_root(Root(config.state_root)).project(project.name).ci
    verdict = open_forge(project).run_check(commit, project.ci, work, locked=locked)
    if not locked:
        say(verdict.state if verdict else "pending")
