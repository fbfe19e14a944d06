"""`sm recover`: restart an agent by hand."""

from __future__ import annotations

import click

from sm.cli.options import pass_config, project_issue
from sm.config.schema import Config, ProjectSettings
from sm.output import say


@click.command("recover")
@project_issue
@pass_config
def command(config: Config, project: ProjectSettings, issue: int) -> None:
    """Restart the agent of an issue from its worktree and branch.

    What still runs for it is ended first. The new agent is told the issue, what git knows of
    the work, the last phase and the last CI result or review. An issue that no session here
    works on is taken over, even from another machine.
    """
    from sm.issues.recover import recover
    from sm.sessions.project import Project

    session = recover(Project(config, project), issue)
    say(f"recovering {session.name} in {session.worktree}")
