"""Have CI run again because a person says so."""

from __future__ import annotations

from sm.adapters.forge.errors import NotFoundError, PullClosedError
from sm.forge import PullRequest, PullState
from sm.workflow.context import Context


def rerun(ctx: Context, number: int) -> str:
    """Have CI run again on issue or pull request `number`; returns the commit.

    Raises:
        NotFoundError: there is none of that number, or it has no branch yet.
        PullClosedError: it is merged or closed.
        AtWorkError: CI is at work on it.
        UsageError: the project has no CI.

    """
    head = _head(ctx, number)
    ctx.forge.rerun_check(head)
    return head


def _head(ctx: Context, number: int) -> str:
    if ctx.forge.folder.kind_of(number) == "pulls":
        return _open(ctx.forge.pull(number)).head
    branch = ctx.project.branch(number)
    if pull := ctx.forge.pull_for(branch):
        return _open(pull).head
    if head := ctx.forge.repository.heads().get(branch):
        return head
    raise NotFoundError(f"issue {number} has no branch '{branch}' on the forge yet")


def _open(pull: PullRequest) -> PullRequest:
    if pull.state is not PullState.OPEN:
        raise PullClosedError(
            f"pull request {pull.number} is {pull.state}: there is nothing to run"
        )
    return pull
