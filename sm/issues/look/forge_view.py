"""Snapshot: what one look at the forge has shown, as far as decisions need it: no long texts."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from sm.adapters.forge.model import Batch, Issue, PullRequest
from sm.adapters.forge.trust import Trust
from sm.base.issue_id import IssueId
from sm.config.schema import ProjectSettings


class Snapshot(Struct, frozen=True, dict=True):
    """Observation of the forge, begun at `taken_at`, without long texts.

    `refs` are the remote's branches and claims. `writers` and `validators` are as in the `Batch`
    that it was made from. Everything was last read from scratch at `whole_at`. `basis` tells which
    settings of the project decided what was kept.
    """

    taken_at: float
    issues: tuple[Issue, ...] = ()
    pulls: tuple[PullRequest, ...] = ()
    refs: dict[str, str] = {}
    problems: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    validators: dict[str, str] = {}
    whole_at: float = 0.0
    basis: str = ""

    @property
    def is_part(self) -> bool:
        """Whether it shows only what concerns the sessions of a node."""
        return not self.basis

    def issue(self, number: IssueId) -> Issue | None:
        """Return the issue, without its text; None if it is unknown."""
        return self._by_number.get(number)

    def pull(self, branch: str) -> PullRequest | None:
        """Return the newest pull request of `branch`."""
        return self._by_branch.get(branch)

    def head(self, branch: str) -> str:
        """Return the commit of `branch` on the remote, '' if there is no such branch."""
        return self.refs.get(f"refs/heads/{branch}", "")

    def trust(self, project: ProjectSettings) -> Trust:
        """Return who is trusted of those who have said something."""
        return Trust(project.trusted, self._writers)

    @property
    def batch(self) -> Batch:
        """Batch that the next observation may begin from."""
        return Batch(self.issues, self.pulls, self.writers, self.problems, self.validators)

    @cached_property
    def _writers(self) -> frozenset[str]:
        return frozenset(self.writers)

    @cached_property
    def _by_number(self) -> dict[IssueId, Issue]:
        return {issue.number: issue for issue in self.issues}

    @cached_property
    def _by_branch(self) -> dict[str, PullRequest]:
        """Newest pull request of each branch: later ones take the place of earlier ones."""
        oldest_first = sorted(self.pulls, key=lambda pull: pull.number)
        return {pull.branch: pull for pull in oldest_first}
