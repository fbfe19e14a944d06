"""What keeps a forge from merging a pull request, in words. Pure."""

from __future__ import annotations

from msgspec import structs

from sm.adapters.forge.model import Hold, PullRequest, ReviewState
from sm.plugins.forges.rest.rules import BranchRules

DRAFT = "DRAFT"
STATES = {"BLOCKED": Hold.BLOCKED, "BEHIND": Hold.BEHIND, DRAFT: Hold.BLOCKED}
"""GitHub's words for what it would do. By any other it merges, or something else tells why not."""
UNTOLD = "the forge does not say why: its page of the pull request does"


def hold_back(pull: PullRequest, state: str, decision: str, rules: BranchRules) -> PullRequest:
    """`pull` with what GitHub says of its merge: `mergeStateStatus` and `reviewDecision`."""
    hold = STATES.get(state.upper(), Hold.NONE)
    if hold is Hold.BEHIND:
        return structs.replace(pull, hold=hold, held=f"the branch is behind '{pull.base}'")
    if state.upper() == DRAFT:
        return hold_draft(pull)
    if hold is Hold.BLOCKED:
        return structs.replace(pull, hold=hold, held=_explain(decision.upper(), rules))
    return pull


def hold_draft(pull: PullRequest) -> PullRequest:
    """`pull`, which is a draft."""
    return structs.replace(pull, hold=Hold.BLOCKED, held="it is a draft: mark it as ready")


def _explain(decision: str, rules: BranchRules) -> str:
    """Why it is blocked, as far as that can be told apart."""
    found = []
    if decision == "REVIEW_REQUIRED":
        found.append(f"an approval that the rules of the branch ask for{_whose(rules)}")
    if decision == "CHANGES_REQUESTED":
        found.append("a reviewer who asked for changes, and has to approve them")
    if not found and rules.threads:
        found.append("threads of a review, which must all be resolved")
    return f"it waits for {'; '.join(found)}" if found else UNTOLD


def _whose(rules: BranchRules) -> str:
    many = f"{rules.approvals} in all" if rules.approvals > 1 else ""
    owner = "one by an owner of the code" if rules.code_owners else ""
    other = "one by somebody who has not made the last push" if rules.last_push else ""
    said = ", ".join(filter(None, (many, owner, other)))
    return f" ({said})" if said else ""


def queue_up(pull: PullRequest, place: int, state: str) -> PullRequest:
    """`pull` in a merge queue; `place` is 0 if that is not known."""
    where = f", at place {place}" if place else ""
    doing = f" ({state.lower().replace('_', ' ')})" if state else ""
    return structs.replace(pull, hold=Hold.QUEUED, held=f"it is in the merge queue{where}{doing}")


def count_approvals(pull: PullRequest, rules: BranchRules) -> PullRequest:
    """`pull`, held if fewer reviewers agree than the branch wants.

    Only official approvals count. To ask for a review anew makes the earlier ones unofficial.
    """
    approvals = [one for one in pull.reviews if one.state is ReviewState.APPROVED and one.official]
    agreed = len({one.author for one in approvals})
    if agreed >= rules.approvals:
        return pull
    held = f"it waits for approvals: the branch wants {rules.approvals}, and {agreed} are there"
    return structs.replace(pull, hold=Hold.BLOCKED, held=held)
