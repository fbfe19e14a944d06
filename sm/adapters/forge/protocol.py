"""What `sm` asks of a forge, whichever forge it is: a `Forge` of three parts.

`sm.adapters.forge.kinds` opens the one that a project's configuration names. Each forge passes
the same tests, `tests/adapters/forge_contract.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

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

if TYPE_CHECKING:
    from sm.config.schema import Ci


class CheckRun(Protocol):
    """What came of running CI once."""

    @property
    def state(self) -> CheckState:
        """What it says of the commit."""
        ...

    @property
    def step(self) -> str:
        """Where it failed."""
        ...

    @property
    def took_s(self) -> float:
        """How long it took, in seconds."""
        ...


class Discussion(Protocol):
    """What people comment on: issues, or pull requests."""

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        """The comments on one of them, and who has edited each last.

        One request or a few; it may be only the last hundred. Of a number that is not there, none
        or NotFoundError.
        """
        ...

    def comment(self, number: int, body: str, *, author: str, marker: str = "") -> bool:
        """Comment on one of them; False if a comment with `marker` is there already.

        On a forge that numbers issues and pull requests together, either part takes both.
        """
        ...


class Issues(Discussion, Protocol):
    """The issues of a forge."""

    def find(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        """The issues in that state that have all of `labels`, oldest first; and the problems."""
        ...

    def read(self, number: int) -> Issue:
        """One issue with its texts; NotFoundError if there is none."""
        ...

    def read_source(self, number: int) -> SourcedText:
        """Title and text of an issue with who saved them last; one or two requests."""
        ...

    def add(self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str) -> Issue:
        """File an issue."""
        ...

    def edit(
        self,
        number: int,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        """Give an issue another title or text; UsageError if its text is not `instead_of`."""
        ...

    def close(self, number: int) -> Issue:
        """Close an issue; a closed one stays so."""
        ...

    def reopen(self, number: int) -> Issue:
        """Open an issue again; an open one stays so."""
        ...

    def list_labels(self) -> set[str]:
        """Every label that there is."""
        ...

    def add_label(self, number: int, label: str) -> Issue:
        """Give an issue a label, if it lacks it."""
        ...

    def remove_label(self, number: int, label: str) -> Issue:
        """Take a label off an issue, if it has it."""
        ...


class Pulls(Discussion, Protocol):
    """The pull requests of a forge, with their reviews and merges."""

    def find(self, state: PullState | None = None) -> tuple[list[PullRequest], list[str]]:
        """The pull requests in that state, oldest first; and the problems."""
        ...

    def find_newest(self, branch: str) -> PullRequest | None:
        """The newest pull request of `branch`."""
        ...

    def read(self, number: int) -> PullRequest:
        """One pull request with its texts; NotFoundError if there is none."""
        ...

    def read_reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews of a pull request with their texts, and who has edited each text last.

        A few requests; NotFoundError if there is no such pull request.
        """
        ...

    def open(
        self, branch: str, base: str, title: str, body: str = "", *, author: str
    ) -> PullRequest:
        """Offer a branch for merging; the one that is open for it, if there is one.

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
        """The commit that a pull request is at; one request."""
        ...

    def count_commits(self, number: int, since: str) -> int:
        """How many commits a pull request has that the commit `since` lacks.

        NotFoundError if the forge does not know that commit any more.
        """
        ...

    def diff(self, number: int, *, stat: bool = False, limit: int | None = None) -> bytes:
        """What a pull request changes, as `git diff` shows it; with `stat` as `--stat` does.

        With a `limit` its first bytes alone.
        """
        ...

    def list_files(self, number: int, head: str = "") -> list[str]:
        """The files that a pull request changes up to `head`, by default its last commit."""
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
    """What CI says of commits."""

    def read(self, head: str) -> Check:
        """What CI says of a commit, with the failing log."""
        ...

    def rerun(self, head: str) -> None:
        """Have CI run on a commit again, whatever it said before.

        Raises:
            AtWorkError: it is at work on it.
            UsageError: no CI is configured.

        """
        ...


class Forge(Protocol):
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
    def issues(self) -> Issues:
        """Its issues."""
        ...

    @property
    def pulls(self) -> Pulls:
        """Its pull requests."""
        ...

    @property
    def checks(self) -> Checks:
        """What CI says."""
        ...

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        """Every issue and pull request, each open pull request with the check of its head.

        `since` is an earlier observation: the forge is asked for what has changed after it, and
        the rest is taken from it, without the texts if `since` has none. None: all is read anew.
        A check has no log. With `start_checks`, a forge that runs CI itself starts what has no
        result yet.
        """
        ...

    def is_stale(self, since: Batch) -> bool:
        """Whether the forge is known to have changed since, as far as this machine can tell.

        It is called in each pass over a session, so it sends no request: a forge elsewhere says
        no, and is observed when the interval is over.
        """
        ...

    def pause_s(self, sharers: int = 1) -> float:
        """Seconds that two observations must be apart for the forge's limits; 0: any number.

        `sharers` installations observe under the same limits, this one included. It is called in
        each pass over a session, so it sends no request.
        """
        ...

    def find_writers(self, authors: Iterable[str]) -> frozenset[str]:
        """Those of `authors` who may push to the repository, as the forge knows them."""
        ...

    def is_pull(self, number: int) -> bool:
        """Whether the number is a pull request and no issue; NotFoundError if it is neither.

        A number that is both is an issue.
        """
        ...

    def branch_head(self, branch: str) -> str:
        """The commit of a branch, '' if there is no such branch."""
        ...


# What some forges have beside it


@runtime_checkable
class Signing(Protocol):
    """A forge whose changes show on this machine."""

    def signs(self) -> tuple[Path, ...]:
        """Files that get a new time when the forge changes.

        The first one changes with everything that is done through `sm`, and with every push.
        """
        ...


def list_signs(forge: Forge) -> tuple[Path, ...]:
    """The files that get a new time when the forge changes; none if nothing shows that here."""
    return forge.signs() if isinstance(forge, Signing) else ()


@runtime_checkable
class Accounted(Protocol):
    """A forge on which `sm` writes by an account, whose marks alone it believes."""

    def find_account(self) -> str:
        """The name of that account; it is asked for once for each token."""
        ...


@runtime_checkable
class Hosting(Protocol):
    """A forge on this machine: it has the repository, and runs CI."""

    def git_dirs(self) -> tuple[Path, ...]:
        """Its repositories, in which a killed git may leave a lock behind."""
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
    """A forge that a token opens, which may be one that cannot do everything."""

    def find_limits(self) -> Iterator[str]:
        """What the token cannot do that stops nothing, and is good to know."""
        ...
