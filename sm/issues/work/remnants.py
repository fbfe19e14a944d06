"""Removes what a closed issue leaves on the remote: a branch without work, an open pull request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sm.adapters.forge.errors import PullClosedError, RefusedError
from sm.adapters.forge.model import BOT, PullState
from sm.adapters.git_push import PushRefusedError, RefMovedError
from sm.base.errors import SmError
from sm.issues.look.snapshot import Snapshot, is_open
from sm.issues.work import claim, kept_worktrees
from sm.sessions.project import Project
from sm.sessions.session import IssueSession

KEPT_FOR_OTHERS = "kept: others have pushed to it since"


def close_pull(project: Project, issue: int, branch: str) -> str:
    """Close the open pull request of the issue's branch; return its name, '' for none."""
    pull = project.forge.pulls.find_newest(branch)
    if pull is None or pull.state is not PullState.OPEN:
        return ""
    # The comment comes first: a try after one that failed finds the pull request open.
    text = f"Closed, as issue #{issue} was closed. Branch `{pull.branch}` keeps the work."
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


def sweep(project: Project, seen: Snapshot, sessions: list[IssueSession]) -> Iterator[str]:
    """Do both for the closed issues without a session, here or elsewhere.

    Yields a line for each thing done.
    """
    at_work = {session.issue for session in sessions}

    def is_over(issue: int) -> bool:
        done = bool(issue) and issue not in at_work and not is_open(seen, issue)
        return done and not claim.is_held(issue, seen.refs)

    for issue in filter(is_over, _list_with_pull(project, seen)):
        try:
            if pull := close_pull(project, issue, project.settings.branch(issue)):
                yield f"closed the pull request {pull} of #{issue}, which is closed"
        except SmError as error:
            yield f"cannot close the pull request of #{issue}: {error.message}"
    for issue in filter(is_over, _list_with_empty_branch(project, seen)):
        branch = project.settings.branch(issue)
        try:
            if not delete_branch(project, branch):
                yield f"deleted the branch '{branch}', which has no work"
        except PushRefusedError as error:
            yield f"cannot delete the branch '{branch}': {error.message}"
            return  # it keeps the others, too: at each tick one is tried
        except SmError as error:
            yield f"cannot delete the branch '{branch}': {error.message}"


def _list_with_pull(project: Project, seen: Snapshot) -> Iterator[int]:
    """The issues that have an open pull request which sm itself has opened."""
    for pull in seen.pulls:
        if pull.state is PullState.OPEN and pull.author == BOT:
            yield kept_worktrees.parse_issue(project.settings, pull.branch)


def _list_with_empty_branch(project: Project, seen: Snapshot) -> Iterator[int]:
    """The closed issues that have a branch without work; of one that was not fetched yet as well.

    A branch that keeps work costs one look into the clone, at each tick.
    """
    base = seen.head(project.settings.primary_branch)
    for ref, head in seen.refs.items():
        issue = kept_worktrees.parse_issue(project.settings, ref.removeprefix("refs/heads/"))
        if issue and not is_open(seen, issue) and project.git.ancestry(head, base) is not False:
            yield issue
