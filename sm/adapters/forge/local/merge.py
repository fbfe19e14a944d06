"""Merges on the forge: a real merge commit, made without a work tree, or a reason why not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from sm.adapters.forge import merge_rules
from sm.adapters.forge.errors import BaseMovedError, ConflictError, NotFoundError
from sm.adapters.forge.local.branches import Branches
from sm.adapters.forge.local.checks import LocalChecks
from sm.adapters.forge.local.document import ForgeFile
from sm.adapters.forge.local.folder import ForgeFolder
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.merge_rules import refuse
from sm.adapters.forge.model import PullRequest, PullState
from sm.adapters.forge.trust import Trust
from sm.adapters.git_call import GitLockedError
from sm.adapters.retry import try_again
from sm.base.foreign import tidy
from sm.store.failpoint import crash_point

ATTEMPTS = 20
PAUSE_S = 0.2
"""Longest wait before another attempt, in seconds; chance decides how long each is."""


class MergePolicy(Struct, frozen=True):
    """Conditions of a project for a merge: reviews, and whose (`trusted` of its settings)."""

    review_required: bool = True
    trusted: tuple[str, ...] = ()


def find_writers(authors: Iterable[str]) -> frozenset[str]:
    """Return all `authors`: a person who can write into the folder is a collaborator.

    So an embedded forge trusts everybody unless `trusted` names people. This is the only place
    that says so, and it holds for no other forge.
    """
    return frozenset(authors)


class Wish(Struct, frozen=True):
    """Wish to merge: by whom, at which commit ('': the branch's current one), with what message."""

    author: str
    head: str = ""
    message: str = ""


class MergeSource(Protocol):
    """Pull requests, as far as a merge is about them."""

    @property
    def repository(self) -> BareRepository:
        """Repository with the branches."""

    @property
    def checks(self) -> LocalChecks:
        """Results of CI for each commit."""

    @property
    def folder(self) -> ForgeFolder:
        """Folder of the documents."""

    def read_at(self, number: int, branches: Branches) -> PullRequest:
        """Read a pull request as it is with these branches."""


def merge(pulls: MergeSource, number: int, wish: Wish, rules: MergePolicy) -> PullRequest:
    """Merge a pull request; return it as it is then, also if it was merged before.

    Raises:
        MergeRefusedError: it may not be merged; the subclass says why.
        AtWorkError: CI has not finished.
        HeldError: others kept merging.
        BaseMovedError: others kept pushing to the base.
        GitLockedError: a git that was killed has left a lock on it.

    """

    def attempt() -> PullRequest:
        branches = Branches(pulls.repository)
        pull = pulls.read_at(number, branches)
        if pull.state is PullState.MERGED:
            return pull
        pulls.checks.ensure(pull.head)
        trust = Trust(rules.trusted, find_writers(review.author for review in pull.reviews))
        refuse(pull, wish.head, merge_rules.MergeRules(rules.review_required, trust))
        _merge(pulls, pull, branches, wish)
        return pulls.read_at(number, branches)

    passing = (BaseMovedError, GitLockedError)
    with pulls.folder.merging():
        return try_again(attempt, passing, tries=ATTEMPTS, pauses_s=(PAUSE_S, PAUSE_S))


def _merge(pulls: MergeSource, pull: PullRequest, branches: Branches, wish: Wish) -> None:
    repository = pulls.repository
    old = branches.heads.get(pull.base)
    if old is None:
        raise NotFoundError(f"there is no branch '{pull.base}' on the forge: push it first")
    if branches.contains(pull.base, pull.head):
        raise BaseMovedError(f"'{pull.base}' has got '{pull.branch}' in this moment: look again")
    tried = repository.try_merge(old, pull.head)
    if tried.conflicts:
        files = ", ".join(f"'{name}'" for name in tried.conflicts[:5])
        raise ConflictError(
            f"'{pull.branch}' conflicts with '{pull.base}' in {files}: rebase it and push"
        )
    usual = f"Merge branch '{pull.branch}' (#{pull.number})\n\n{tidy(pull.title)}\n"
    message = wish.message or usual
    commit = repository.commit_merge(tried.tree, (old, pull.head), message, wish.author)
    crash_point("forge.before-merge")
    repository.advance(pull.base, commit, old, pull.branch, pull.head)
    crash_point("forge.after-merge")

    def note(document: ForgeFile) -> ForgeFile:
        return document.end(PullState.MERGED, head=pull.head, merged=commit)

    pulls.folder.update("pulls", pull.number, note)
