"""Rules for a merge, on every forge: the pull request's checks, its reviews, its commit."""

from __future__ import annotations

from msgspec import Struct

from sm.adapters.forge.errors import (
    AtWorkError,
    ChecksNotPassedError,
    HeadMovedError,
    NotApprovedError,
    PullClosedError,
)
from sm.adapters.forge.model import CheckState, PullRequest, PullState, ReviewState
from sm.adapters.forge.trust import Trust, verdict

PASSED = (CheckState.SUCCESS, CheckState.NONE)


class MergeRules(Struct, frozen=True):
    """Conditions of a project for a merge: a review, of one who is trusted."""

    review_required: bool
    trust: Trust


def refuse(pull: PullRequest, head: str, rules: MergeRules) -> None:
    """Raise the reason for which `pull` may not be merged at `head`, if there is one."""
    if pull.state is PullState.CLOSED:
        raise PullClosedError(f"pull request {pull.number} is closed: open a new one")
    if head and head != pull.head:
        raise HeadMovedError(
            f"'{pull.branch}' is at {pull.head[:12]} and not at {head[:12]} any more: "
            "have the new commits checked and reviewed"
        )
    _refuse_unchecked(pull)
    _refuse_unreviewed(pull, rules)


def _refuse_unreviewed(pull: PullRequest, rules: MergeRules) -> None:
    decisive = verdict(pull.reviews, pull.head, rules.trust)
    if decisive and decisive.state is ReviewState.CHANGES_REQUESTED:
        raise NotApprovedError(
            f"'{decisive.author}' wants changes in pull request {pull.number}: "
            "make them and ask for another review"
        )
    if rules.review_required and decisive is None:
        raise NotApprovedError(
            f"pull request {pull.number} is not approved at {pull.head[:12]}: "
            f"approve it after a look at it, by 'sm review {pull.number} --approve' or on the forge"
        )


def _refuse_unchecked(pull: PullRequest) -> None:
    if pull.check.state in PASSED:
        return
    if pull.check.state is CheckState.PENDING:
        raise AtWorkError(f"CI has not finished on {pull.head[:12]}: merge when it has")
    if pull.check.state is CheckState.BROKEN:
        raise ChecksNotPassedError(
            f"nothing is known of {pull.head[:12]} ({pull.check.step}): have CI run again by "
            f"'sm ci rerun PROJECT {pull.number} --pull'"
        )
    raise ChecksNotPassedError(
        f"CI failed on {pull.head[:12]} ({pull.check.step}): see '{pull.check.url}'"
    )
