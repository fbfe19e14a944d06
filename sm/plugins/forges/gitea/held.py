"""What keeps Forgejo and Gitea from merging a pull request, in words. Pure."""

from __future__ import annotations

from msgspec import structs

from sm.adapters.forge.model import Hold, PullRequest, PullState
from sm.plugins.forges.rest.held import count_approvals, hold_draft
from sm.plugins.forges.rest.rules import BranchRules
from sm.plugins.forges.rest.shapes import PullShape


def hold_back(pull: PullRequest, shape: PullShape, rules: BranchRules) -> PullRequest:
    """`pull` with what keeps the forge from merging it into a branch of these rules."""
    if pull.state is not PullState.OPEN:
        return pull
    if shape.draft:
        return hold_draft(pull)
    if not rules.may_merge:
        held = f"the account of the token may not merge into '{pull.base}'"
        return structs.replace(pull, hold=Hold.BLOCKED, held=held)
    if rules.strict and is_behind(shape):
        return structs.replace(pull, hold=Hold.BEHIND, held=f"the branch is behind '{pull.base}'")
    return count_approvals(pull, rules)


def is_behind(shape: PullShape) -> bool:
    """Whether the pull request lacks commits of its base.

    `base.sha` is the last commit of the base, `merge_base` what the pull request has of it.
    """
    return bool(shape.merge_base) and shape.merge_base != shape.base.sha
