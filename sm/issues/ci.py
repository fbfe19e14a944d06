"""Runs CI again because a person asks for it."""

from __future__ import annotations

from sm.adapters.forge.errors import NotFoundError, PullClosedError
from sm.adapters.forge.model import PullRequest, PullState
from sm.base.issue_id import IssueId, check_pull
from sm.sessions.project import Project


def rerun(project: Project, number: IssueId, *, on_pull: bool = False) -> str:
    """Run CI again for issue or pull request `number`; return the commit.

    `on_pull` says that it is a pull request's, on a forge where an issue may have it as well.

    Raises:
        NotFoundError: nothing has that number, or it has no branch yet.
        PullClosedError: it is merged or closed.
        AtWorkError: CI is running on it.
        UsageError: the project has no CI.

    """
    head = _head(project, number, on_pull=on_pull)
    project.forge.checks.rerun(head)
    return head


def _head(project: Project, number: IssueId, *, on_pull: bool) -> str:
    if on_pull or project.forge.is_pull(number):
        return _open(project.forge.pulls.read(check_pull(number))).head
    branch = project.settings.branch(number)
    if pull := project.forge.pulls.find_newest(branch):
        return _open(pull).head
    if head := project.forge.branch_head(branch):
        return head
    raise NotFoundError(f"issue {number} has no branch '{branch}' on the forge yet")


def _open(pull: PullRequest) -> PullRequest:
    if pull.state is not PullState.OPEN:
        raise PullClosedError(
            f"pull request {pull.number} is {pull.state}: there is nothing to run"
        )
    return pull
