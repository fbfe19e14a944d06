"""`sm worktree`: what worktrees there are, and drop one that was kept."""

from __future__ import annotations

import click

from sm.base.issue_id import IssueId
from sm.base.output import say
from sm.cli.arguments import project_issue
from sm.cli.forges import print_table
from sm.cli.options import json_option, projects_option
from sm.cli.words import print_json
from sm.sessions.project import Project


@click.group()
def command() -> None:
    """List worktrees, and drop those that were kept when their session ended."""


@command.command("list")
@json_option
@projects_option
def list_(projects: tuple[Project, ...], as_json: bool) -> None:
    """List the worktrees of issues, and what would be lost with each that no session works in."""
    from sm.issues.work.kept_worktrees import list_all

    found = [one for project in projects for one in list_all(project)]
    if as_json:
        print_json(found)
        return
    print_table(
        ("#", "Issue", "State", "Worktree", "Would be lost"),
        [
            (
                f"{one.project}#{one.issue}",
                one.title,
                one.state,
                one.path,
                one.problem or _tell_lost(one.session, one.lost),
            )
            for one in found
        ],
        empty="no worktrees of issues",
    )


def _tell_lost(session: str, lost: tuple[str, ...]) -> str:
    if session:
        return f"at work: {session}"
    return "; ".join(lost) or "nothing"


@command.command()
@project_issue
@click.option("--force", is_flag=True, help="Also where work is lost with it.")
def drop(project: Project, issue: IssueId, force: bool) -> None:
    """Remove the worktree of an issue that no session works on, and its local branch.

    Work that is neither committed nor pushed keeps it: it says which, and --force lets that be
    lost. Branches on the remote stay.
    """
    from sm.issues.work.kept_worktrees import drop

    lost = drop(project, issue, force=force)
    say(f"dropped the worktree of {project.name}#{issue}")
    for loss in lost:
        say(f"lost with it: {loss}")
