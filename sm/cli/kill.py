"""`sm kill`: end a session by hand."""

from __future__ import annotations

import click

from sm.cli.options import pass_config, project_issue
from sm.config.schema import Config, Project


@click.command("kill")
@project_issue
@pass_config
def command(config: Config, project: Project, issue: int) -> None:
    """End the session of ISSUE and label the issue blocked.

    Uncommitted or unpushed work stays in its worktree; the branch and the pull request stay as
    they are. Take the label off, and give the issue the backlog label, to have it worked on
    again.
    """
    from sm.workflow.context import Context
    from sm.workflow.kill import kill

    for line in kill(Context(config, project), issue):
        click.echo(line)
