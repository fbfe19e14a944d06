"""`sm react`: called by the monitor."""

from __future__ import annotations

import click

from sm.cli.options import pass_config, project_issue
from sm.config.schema import Config, Project
from sm.store.paths import session_name


@click.command("react", help="React to what has happened in one session.")
@project_issue
@pass_config
def command(config: Config, project: Project, issue: int) -> None:
    """One pass of the reactor."""
    from sm.workflow.context import Context
    from sm.workflow.reactor import react

    react(Context(config, project), session_name(project.name, issue))
