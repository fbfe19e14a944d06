"""`sm start-session`: called by `agent-session start`."""

from __future__ import annotations

import click

from sm.base.issue_id import IssueId
from sm.base.output import say
from sm.cli.arguments import project_issue
from sm.sessions.project import Project


@click.command("start-session", help="Start the session of one open issue, whatever its labels.")
@project_issue
def command(project: Project, issue: IssueId) -> None:
    """Claim, worktree, agent, monitor."""
    from sm.issues.by_hand import start_by_hand

    session = start_by_hand(project, issue)
    say(f"{session.name} is at work in {session.worktree}")
