"""`sm start-session`: called by `agent-session start`."""

from __future__ import annotations

import click

from sm.cli.options import pass_config, project_issue
from sm.config.schema import Config, ProjectSettings
from sm.output import say


@click.command("start-session", help="Start the session of one open issue, whatever its labels.")
@project_issue
@pass_config
def command(config: Config, project: ProjectSettings, issue: int) -> None:
    """Claim, worktree, agent, monitor."""
    from sm.issues.by_hand import start_by_hand
    from sm.sessions.project import Project

    session = start_by_hand(Project(config, project), issue)
    say(f"{session.name} is at work in {session.worktree}")
