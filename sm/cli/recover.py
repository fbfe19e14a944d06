"""`sm recover`: restart an agent by hand."""

from __future__ import annotations

import click

from sm.base.output import say
from sm.cli.agent_forge import leave_to_others
from sm.cli.arguments import project_issue
from sm.cli.words import tell_paused
from sm.sessions.project import Project


@click.command("recover")
@project_issue
def command(project: Project, issue: int) -> None:
    """Restart the agent of an issue from its worktree and branch.

    What still runs for it is ended first. The new agent is told the issue, what git knows of the
    work, the last phase, and the last CI result or review. If no session here works on the issue,
    it is taken over, even from another machine. A blocked issue is refused, with the command that
    unblocks it.
    """
    from sm.issues.recover import recover

    leave_to_others(project, "restart it", issue=issue)
    session = recover(project, issue)
    say(f"recovering {session.name} in {session.worktree}")
    tell_paused(session)
