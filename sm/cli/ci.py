"""`sm ci`: have CI run again."""

from __future__ import annotations

import click

from sm.acts.permission import leave_to_others
from sm.base.issue_id import IssueId, check_pull
from sm.base.output import say
from sm.cli.agent_forge import find_agent
from sm.cli.arguments import numbered_argument
from sm.sessions.project import Project


@click.group()
def command() -> None:
    """Have CI run again."""


@command.command()
@numbered_argument
@click.option("--pull", "on_pull", is_flag=True, help="The number is a pull request's.")
def rerun(numbered: tuple[Project, IssueId], on_pull: bool) -> None:
    """Have CI run again on an issue or a pull request, at its branch's last commit.

    What it said before is forgotten; what it says now reaches the agent that waits for it. For a
    failure that was not the commit's: a machine without memory, a service that was down.

    --pull is for forges that number pull requests apart from issues, such as GitLab.
    """
    from sm.issues.review import rerun_ci

    project, number = numbered
    if find_agent(project):  # a person need not wait for what this asks the forge
        is_pull = on_pull or project.forge.is_pull(number)
        issue, pull = (0, check_pull(number)) if is_pull else (number, 0)
        leave_to_others(project, "run its CI again", issue=issue, pull=pull)
    head = rerun_ci(project, number, on_pull=on_pull)
    say(f"CI runs again on {head[:12]}: see sm status")
