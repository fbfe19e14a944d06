"""Start the session of one issue because a person says so."""

from __future__ import annotations

from sm.errors import TemporaryError, UsageError
from sm.forge import IssueState
from sm.session import claim
from sm.session.registry import IssueSession
from sm.workflow.context import Context
from sm.workflow.start import TakenError, start


def start_by_hand(ctx: Context, number: int) -> IssueSession:
    """Start the session of an open issue, whether or not it is in the backlog.

    One that runs already is left as it is.

    Raises:
        NotFoundError: there is no such issue.
        UsageError: it is closed, or blocked.
        TakenError: somebody else works on it; who is in the message.

    """
    issue = ctx.forge.issue(number)
    blocked = ctx.project.labels.blocked
    if issue.state is not IssueState.OPEN:
        raise UsageError(f"issue #{number} is closed: nothing to start")
    if blocked in issue.labels:
        raise UsageError(f"issue #{number} is labelled '{blocked}': take that label off first")
    try:
        return start(ctx, issue, by_hand=True)
    except TakenError as error:
        raise TakenError(
            f"{error.message} ({_owner(ctx, number)}): "
            f"take it over with sm recover {ctx.project.name} {number}"
        ) from error


def _owner(ctx: Context, number: int) -> str:
    try:
        return claim.owner(ctx.git, ctx.project, number) or "just given up"
    except TemporaryError:
        return "by whom cannot be asked now"
