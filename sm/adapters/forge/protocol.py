"""Protocol of all forges: a `Forge` of three parts.

`sm.adapters.forge.kinds` opens the one that a project's configuration names. Each forge passes
the same tests, `sm/testing/forge.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from sm.adapters.forge.model import (
    Batch,
    Check,
    CheckState,
    Comment,
    InlineComment,
    Issue,
    IssueState,
    PullRequest,
    PullState,
    Review,
    ReviewState,
    SourcedText,
)
from sm.base.issue_id import IssueId

if TYPE_CHECKING:
    from sm.config.schema import Ci

N = TypeVar("N", bound=IssueId, contravariant=True)
"""Ids that are understood: numbers by a forge, texts by a tracker."""


class CheckRun(Protocol):
    """Result of one run of CI."""

    @property
    def state(self) -> CheckState:
        """Verdict on the commit."""
        ...

    @property
    def step(self) -> str:
        """Step where it failed."""
        ...

    @property
    def took_s(self) -> float:
        """Duration of the run, in seconds."""
        ...


class Discussion(Protocol[N]):
    """Issues or pull requests, which people comment on."""

    def read_comments(self, number: N) -> tuple[Comment, ...]:
        """Read the comments on one of them, and who has edited each last.

        This takes one request or a few; it may be only the last hundred. A number that is not there
        has none, or raises NotFoundError.
        """
        ...

    def comment(self, number: N, body: str, *, author: str, marker: str = "") -> bool:
        """Comment on one of them; False if a comment with `marker` is there already.

        On a forge that numbers issues and pull requests together, either part takes both.
        """
        ...


class Issues(Discussion[N], Protocol[N]):
    """Issues of a forge."""

    def find(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        """Find the issues in that state that have all `labels`, oldest first; and the problems."""
        ...

    def read(self, number: N) -> Issue:
        """Read an issue with its texts; NotFoundError if there is none."""
        ...

    def read_source(self, number: N) -> SourcedText:
        """Return title and text of an issue with who saved them last; one or two requests."""
        ...

    def add(self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str) -> Issue:
        """File an issue."""
        ...

    def edit(
        self,
        number: N,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        """Give an issue another title or text; UsageError if its text is not `instead_of`."""
        ...

    def close(self, number: N) -> Issue:
        """Close an issue; a closed one stays so."""
        ...

    def reopen(self, number: N) -> Issue:
        """Open an issue again; an open one stays so."""
        ...

    def list_labels(self) -> set[str]:
        """List every label that there is."""
        ...

    def add_label(self, number: N, label: str) -> Issue:
        """Give an issue a label, if it lacks it."""
        ...

    def remove_label(self, number: N, label: str) -> Issue:
        """Take a label off an issue, if it has it."""
        ...


class Pulls(Discussion[int], Protocol):
    """Pull requests of a forge, with their reviews and merges."""

    def find(self, state: PullState | None = None) -> tuple[list[PullRequest], list[str]]:
        """Find the pull requests in that state, oldest first; and the problems."""
        ...

    def find_newest(self, branch: str) -> PullRequest | None:
        """Find the newest pull request of `branch`."""
        ...

    def read(self, number: int) -> PullRequest:
        """Read a pull request with its texts; NotFoundError if there is none."""
        ...

    def read_reviews(self, number: int) -> tuple[Review, ...]:
        """Read the reviews of a pull request with their texts, and who has edited each text last.

        This takes a few requests; NotFoundError if there is no such pull request.
        """
        ...

    def open(
        self, branch: str, base: str, title: str, body: str = "", *, author: str
    ) -> PullRequest:
        """Offer a branch for merging; if a pull request is open for it, return that.

        Raises:
            NotFoundError: one of the branches has not been pushed.
            NothingToMergeError: the branch has no commits of its own.

        """
        ...

    def close(self, number: int) -> PullRequest:
        """Close a pull request unmerged; PullClosedError if it is merged."""
        ...

    def review(
        self,
        number: int,
        state: ReviewState,
        body: str = "",
        comments: Iterable[InlineComment] = (),
        *,
        author: str,
        head: str = "",
    ) -> Review:
        """Review the commit `head`, by default the branch's current one."""
        ...

    def read_head(self, number: int) -> str:
        """Read the commit that a pull request is at; one request."""
        ...

    def count_commits(self, number: int, since: str) -> int:
        """Count the commits of a pull request that the commit `since` lacks.

        NotFoundError if the forge does not know that commit any more.
        """
        ...

    def diff(self, number: int, *, stat: bool = False, limit: int | None = None) -> bytes:
        """Return a pull request's change, as `git diff` shows it; with `stat` as `--stat` does.

        With a `limit` it returns only the first bytes.
        """
        ...

    def list_files(self, number: int, head: str = "") -> list[str]:
        """List the files that a pull request changes up to `head`, by default its last commit."""
        ...

    def merge(self, number: int, *, author: str, head: str = "", message: str = "") -> PullRequest:
        """Merge at `head`, by default the branch's current commit; a merged one is returned.

        If the forge merges by a queue, it is put there: then it is open, and QUEUED.

        Raises:
            MergeRefusedError: it may not be merged; the subclass says why.
            AtWorkError: CI has not finished.
            BaseMovedError: not now, as others are merged.

        """
        ...


class Checks(Protocol):
    """Results of CI for commits."""

    def read(self, head: str) -> Check:
        """Return the state of CI at a commit, with the failing log."""
        ...

    def rerun(self, head: str) -> None:
        """Have CI run on a commit again, whatever it said before.

        Raises:
            AtWorkError: it is at work on it.
            UsageError: no CI is configured.

        """
        ...


class ForgeOf(Protocol[N]):
    """Issues, pull requests, reviews, checks and merges of one project.

    A forge keeps nothing between two calls that an answer depends on: what it needs for the next
    observation is in the `Batch` of the last one, which the caller has on disk.

    Each write may be repeated, by a process that does not know whether the first try was done. It
    finds the first one's traces: a comment its marker, a pull request its branch, a merge the
    merged state, a label and a closed issue themselves.

    Errors are those of `sm.adapters.forge.errors`, and `TemporaryError` if the forge cannot be
    reached.
    """

    @property
    def issues(self) -> Issues[N]:
        """Issues of the project."""
        ...

    @property
    def pulls(self) -> Pulls:
        """Pull requests of the project."""
        ...

    @property
    def checks(self) -> Checks:
        """Results of CI for the project."""
        ...

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        """Observe every issue and pull request, each open pull request with the check of its head.

        `since` is an earlier observation: the forge is asked for what has changed after it, and the
        rest is taken from it, without the texts if `since` has none. None: all is read again. A
        check has no log. With `start_checks`, a forge that runs CI itself starts what has no result
        yet.
        """
        ...

    def is_stale(self, since: Batch) -> bool:
        """Whether the forge is known to have changed since, as far as this machine can tell.

        It is called in each pass over a session, so it sends no request: a forge elsewhere says
        no, and is observed when the interval is over.
        """
        ...

    def pause_s(self, sharers: int = 1) -> float:
        """Return the seconds that two observations must be apart; 0: any number.

        The forge's limits ask for that. `sharers` installations observe under the same limits, this
        one included. It is called in each pass over a session, so it sends no request.
        """
        ...

    def find_writers(self, authors: Iterable[str]) -> frozenset[str]:
        """Return the `authors` who may push to the repository, as the forge knows them."""
        ...

    def is_pull(self, number: N) -> bool:
        """Whether the number is a pull request and no issue; NotFoundError if it is neither.

        A number that is both is an issue.
        """
        ...

    def branch_head(self, branch: str) -> str:
        """Return the commit of a branch, '' if there is no such branch."""
        ...


Forge = ForgeOf[int]
"""Forge whose own issues have numbers, as every forge's."""
AnyForge = ForgeOf[IssueId]
"""Forge that may have the issues of a tracker, as the rest of `sm` knows it."""


# Abilities of some forges beside it


@runtime_checkable
class Signing(Protocol):
    """Forge whose changes show on this machine."""

    def signs(self) -> tuple[Path, ...]:
        """List files that get a new time when the forge changes.

        The first one changes with everything that is done through `sm`, and with every push.
        """
        ...


def list_signs(forge: Forge | AnyForge) -> tuple[Path, ...]:
    """List the files that get a new time when the forge changes; none if none shows that here."""
    return forge.signs() if isinstance(forge, Signing) else ()


@runtime_checkable
class Accounted(Protocol):
    """Forge on which `sm` writes by an account, whose marks alone it believes."""

    def find_account(self) -> str:
        """Find the name of that account; it is asked for once for each token."""
        ...


@runtime_checkable
class Hosting(Protocol):
    """Forge on this machine: it has the repository, and runs CI."""

    def git_dirs(self) -> tuple[Path, ...]:
        """List its repositories, in which a killed git may leave a lock behind."""
        ...

    def run_check(self, head: str, ci: Ci, work: Path) -> CheckRun | None:
        """Run CI on a commit, now and here, in the private folder `work`.

        None if CI is at work on that commit already.

        Raises:
            UsageError: no CI is configured.

        """
        ...


@runtime_checkable
class Limited(Protocol):
    """Forge that a token opens, which may be one that cannot do everything."""

    def find_limits(self) -> Iterator[str]:
        """Yield shortcomings of the token that stop nothing, and are good to know."""
        ...
