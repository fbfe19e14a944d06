"""What a forge asks for before it merges into a branch, and how that is kept. Pure."""

from __future__ import annotations

from msgspec import Struct, structs

from sm.base.foreign import NAME_LIMIT, tidy

CHECKS = 100
"""Required checks that are kept."""
MERGE, SQUASH, REBASE = "merge", "squash", "rebase"
REBASE_MERGE, FAST_FORWARD = "rebase-merge", "fast-forward-only"
METHODS = (MERGE, SQUASH, REBASE, REBASE_MERGE, FAST_FORWARD)
"""How forges merge; the last two are of Forgejo and Gitea alone (`models/repo/git.go`)."""


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
    """How it may be merged into."""
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


class Source(Struct, frozen=True):
    """What one address has said of the rules, with the validator, which is of that token alone."""

    rules: BranchRules = BranchRules()
    etag: str = ""
    token: str = ""


class KeptRules(Struct, frozen=True):
    """The rules of each branch that was asked for, by branch and address."""

    branches: dict[str, dict[str, Source]] = {}

    def find(self, branch: str) -> BranchRules | None:
        """The rules of a branch, None if they were never read."""
        if (sources := self.branches.get(branch)) is None:
            return None
        found = BranchRules()
        for source in sources.values():
            found = found.join(source.rules)
        return found

    def put(self, branch: str, sources: dict[str, Source]) -> KeptRules:
        """With the rules of one more branch."""
        return structs.replace(self, branches={**self.branches, branch: sources})


def name_checks(names: list[str]) -> tuple[str, ...]:
    """The names of required checks, bounded."""
    return tuple(tidy(name)[:NAME_LIMIT] for name in names[:CHECKS] if name)
