"""Branch protection: what a forge asks for before a merge, and what holds a pull request. Pure."""

from __future__ import annotations

from msgspec import Struct, structs

from sm.adapters.forge.model import Hold, PullRequest, PullState, ReviewState
from sm.base.foreign import NAME_LIMIT, tidy
from sm.plugins.forges.rest.shapes import METHODS, PullShape

CHECKS = 100
"""Required checks that are kept."""


class BranchRules(Struct, frozen=True):
    """The rules of one branch.

    `checks` are the required ones by name, `approvals` how many reviewers must agree.
    """

    checks: tuple[str, ...] = ()
    approvals: int = 0
    code_owners: bool = False
    threads: bool = False
    """Every thread of a review must be resolved."""
    last_push: bool = False
    """One who has not pushed the last commit must agree."""
    methods: tuple[str, ...] = METHODS
    """Methods by which it may be merged into."""
    strict: bool = False
    """Only what has all commits of the branch is merged into it."""
    may_merge: bool = True
    """Whether the account of the token may merge into it."""

    def join(self, other: BranchRules) -> BranchRules:
        """Return what both ask for: of each rule the stricter one."""
        return BranchRules(
            checks=tuple(dict.fromkeys((*self.checks, *other.checks)))[:CHECKS],
            approvals=max(self.approvals, other.approvals),
            code_owners=self.code_owners or other.code_owners,
            threads=self.threads or other.threads,
            last_push=self.last_push or other.last_push,
            methods=tuple(one for one in self.methods if one in other.methods),
            strict=self.strict or other.strict,
            may_merge=self.may_merge and other.may_merge,
        )


class RuleSource(Struct, frozen=True):
    """Rules as one address has told them, with the validator, which is of that token alone."""

    rules: BranchRules = BranchRules()
    etag: str = ""
    token: str = ""


class KeptRules(Struct, frozen=True):
    """The rules of each branch that was asked for, by branch and address."""

    branches: dict[str, dict[str, RuleSource]] = {}

    def find(self, branch: str) -> BranchRules | None:
        """The rules of a branch, None if they were never read."""
        if (sources := self.branches.get(branch)) is None:
            return None
        found = BranchRules()
        for source in sources.values():
            found = found.join(source.rules)
        return found

    def put(self, branch: str, sources: dict[str, RuleSource]) -> KeptRules:
        """Return it with the rules of one more branch."""
        return structs.replace(self, branches={**self.branches, branch: sources})


def name_checks(names: list[str]) -> tuple[str, ...]:
    """The names of required checks, bounded."""
    return tuple(tidy(name)[:NAME_LIMIT] for name in names[:CHECKS] if name)


DRAFT = "DRAFT"
STATES = {"BLOCKED": Hold.BLOCKED, "BEHIND": Hold.BEHIND, DRAFT: Hold.BLOCKED}
"""GitHub's words for what it would do. By any other it merges, or something else tells why not."""
UNTOLD = "the forge does not say why: its page of the pull request does"


def hold_by_state(pull: PullRequest, state: str, decision: str, rules: BranchRules) -> PullRequest:
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


def hold_by_rules(pull: PullRequest, shape: PullShape, rules: BranchRules) -> PullRequest:
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
