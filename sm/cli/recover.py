"""`sm recover`: restart an agent by hand."""

from __future__ import annotations

import click

from sm.acts.permission import leave_to_others
from sm.base.issue_id import IssueId
from sm.base.output import say_lines
from sm.cli.arguments import project_issue
from sm.sessions.project import Project


@click.command("recover")
@project_issue
def command(project: Project, issue: IssueId) -> None:
    """Restart the agent of an issue from its worktree and branch.

    What still runs for it is ended first. The new agent is told the issue, what git knows of the
    work, the last phase, and the last CI result or review. If no session here works on the issue,
    it is taken over, even from another machine. A blocked issue is refused, with the command that
    unblocks it.
    """
    from sm.acts.execution import recover

    leave_to_others(project, "restart it", issue=issue)
    say_lines(recover(project, issue))
