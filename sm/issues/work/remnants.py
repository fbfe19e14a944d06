"""Removes remnants of a closed issue on the remote: a branch without work, an open pull request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sm.adapters.forge.errors import PullClosedError, RefusedError
from sm.adapters.forge.model import BOT, PullRequest, PullState
from sm.adapters.git_call import call
from sm.adapters.git_push import RefMovedError
from sm.base.issue_id import IssueId, spell
from sm.issues.look.snapshot import Snapshot, is_open
from sm.issues.work import kept_worktrees
from sm.sessions.project import Project

KEPT_FOR_OTHERS = "kept: others have pushed to it since"


def close_pull(project: Project, issue: IssueId, branch: str) -> str:
    """Close the open pull request of the issue's branch; return its name, '' for none."""
    pull = project.forge.pulls.find_newest(branch)
    if pull is None or pull.state is not PullState.OPEN:
        return ""
    # The comment comes first: a try after one that failed finds the pull request open.
    text = f"Closed, as issue {spell(issue)} was closed. Branch `{pull.branch}` keeps the work."
    marker = f"closed-with-{issue}"
    with contextlib.suppress(RefusedError):  # it is closed all the same
        project.forge.pulls.comment(pull.number, text, author=BOT, marker=marker)
    try:
        project.forge.pulls.close(pull.number)
    except PullClosedError:  # it has just been merged
        return ""
    return pull.name


def delete_branch(project: Project, branch: str) -> str:
    """Delete an issue's branch on the remote if the primary branch has all of it.

    Returns why the branch was kept, '' if it is gone.
    """
    git, remote = project.git, project.settings.remote
    base = project.settings.primary_branch
    if f"refs/heads/{branch}" not in git.ls_remote(remote, f"refs/heads/{branch}"):
        return ""
    head = git.fetch_branch(remote, branch)
    if not git.is_ancestor(head, git.fetch_branch(remote, base)):
        return "kept: it has work"
    try:
        git.delete_ref(remote, f"refs/heads/{branch}", expect=head)
    except RefMovedError:
        return KEPT_FOR_OTHERS
    return ""


def list_own_pulls(project: Project, seen: Snapshot) -> Iterator[PullRequest]:
    """Yield the open pull requests of issues' branches that sm itself has opened."""
    for pull in seen.pulls:
        ours = pull.state is PullState.OPEN and pull.author == BOT
        if ours and kept_worktrees.parse_issue(project.settings, pull.branch):
            yield pull


def list_empty_branches(project: Project, seen: Snapshot) -> Iterator[IssueId]:
    """Yield the closed issues that have a branch without work, or one that was not fetched yet.

    A branch that keeps work costs one look into the clone, at each tick.
    """
    base = seen.head(project.settings.primary_branch)
    for ref, head in seen.refs.items():
        issue = kept_worktrees.parse_issue(project.settings, ref.removeprefix("refs/heads/"))
        if issue and not is_open(seen, issue) and project.git.ancestry(head, base) is not False:
            yield issue


def list_local_branches(project: Project) -> dict[IssueId, str]:
    """Return the clone's own branches that were made for issues: issue to branch."""
    name = f"refs/heads/{project.settings.branch_prefix}/"
    found = call(project.settings.repo, "for-each-ref", "--format=%(refname:lstrip=2)", name).lines
    issues = {kept_worktrees.parse_issue(project.settings, branch): branch for branch in found}
    return {issue: branch for issue, branch in issues.items() if issue}
