"""What the forges with a REST interface like GitHub's have in common; each adds what it does alone.

Who writes is always the account of the token: the `author` of a call is for forges that have no
accounts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import structs

from sm.adapters.forge import merge_rules
from sm.adapters.forge.combine import Part
from sm.adapters.forge.errors import MergeRefusedError, RefusedError
from sm.adapters.forge.model import (
    Batch,
    Check,
    Comment,
    InlineComment,
    Issue,
    IssueState,
    PullRequest,
    PullState,
    Review,
    ReviewState,
    Saved,
    SourcedText,
)
from sm.adapters.forge.trust import Trust
from sm.base.errors import UsageError
from sm.base.redact import redact
from sm.plugins.forges.rest import issues, people, pulls
from sm.plugins.forges.rest.changed import CURSOR
from sm.plugins.forges.rest.checks import Checks
from sm.plugins.forges.rest.convert import is_of_fork, make_issue, make_pull
from sm.plugins.forges.rest.reader import OBSERVE, Reader
from sm.plugins.forges.rest.report import Report
from sm.plugins.forges.rest.settings import RestSettings
from sm.plugins.forges.rest.shapes import IssueShape
from sm.plugins.forges.rest.state import Known, StateFiles
from sm.plugins.forges.web.client import Client
from sm.plugins.forges.web.limits import CORE
from sm.plugins.forges.web.pace import find_pause

if TYPE_CHECKING:
    from sm.adapters.forge.protocol import CheckRun
    from sm.config.schema import Ci
    from sm.plugins.forges.woodpecker.ci import Woodpecker

T = TypeVar("T")

PROBLEMS = 100
"""Of an observation that are told."""
PULLS = {None: "all", PullState.OPEN: "open"}


class Observer(Protocol):
    """Makes one observation."""

    def read_all(self) -> Batch:
        """Everything that is open, and what was closed lately."""
        ...

    def go_on(self, since: Batch, *, is_written: bool) -> Batch:
        """What has changed since, and the rest as it was; `is_written`: by `sm` itself, too."""
        ...


class RestForge(ABC):
    """Issues, pull requests, reviews, checks and merges of one repository elsewhere."""

    def __init__(
        self, web: Client, settings: RestSettings, woodpecker: Woodpecker | None = None
    ) -> None:
        """Nothing is asked yet; `woodpecker` is the repository's CI, if it is one."""
        self.web, self.settings, self._woodpecker = web, settings, woodpecker
        self.files = StateFiles(settings.state)

    @cached_property
    def reader(self) -> Reader:
        """The repository under its present name."""
        known = self.files.read_known(self.settings.repository)
        self.web.home = known.id if known else 0
        return self.make_reader(known.name if known else self.settings.repository)

    def make_reader(self, repository: str) -> Reader:
        """What reads the repository of that name."""
        return Reader(self.web, repository)

    # Observing

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        """Everything that is open and what was closed within a month, or what has changed.

        The forge runs CI itself, so there is none to start. A branch of a fork is called
        `OWNER:BRANCH`.
        """
        written = self.files.written()  # what is written while we read counts as changed since
        problems = list[str]()
        if since is None or CURSOR not in since.validators:
            problems += self.find_repository()
            found = self.make_observer(anew=True).read_all()
        else:
            is_written = self.is_stale(since)
            found = self.make_observer(anew=False).go_on(since, is_written=is_written)
            problems += since.problems  # what was passed over is not in sight until it changes
        validators = found.validators | {"written": written}
        told = tuple(dict.fromkeys((*problems, *found.problems)))[:PROBLEMS]
        return structs.replace(found, problems=told, validators=validators)

    @abstractmethod
    def make_observer(self, *, anew: bool) -> Observer:
        """What makes one observation of the repository; with `anew` the rules are read as well."""

    def find_repository(self) -> list[str]:
        """Find the repository by its id, once that is known: it may have been renamed.

        Another one that has got the old name is never taken for it.
        """
        configured = self.settings.repository
        known = self.files.read_known(configured)
        found = self.reader.repository_shape(OBSERVE, known.id if known else 0)
        self.files.remember(Known(configured, found.id, found.full_name))
        self.web.home = found.id
        if found.full_name.lower() == configured.lower():
            return []
        self.__dict__.pop("reader", None)
        return [
            f"'{configured}' is called '{found.full_name}' now: "
            "set forge.repository, and the remote of the clone"
        ]

    def is_stale(self, since: Batch) -> bool:
        """Whether something was written through `sm` on this machine since."""
        return since.validators.get("written", "") != self.files.written()

    def signs(self) -> tuple[Path, ...]:
        """The file that gets a new time with everything that is written through `sm`."""
        return (self.files.sign,) if self.files.sign else ()

    def git_dirs(self) -> tuple[Path, ...]:
        """None: the repository is elsewhere."""
        return ()

    def pause_s(self) -> float:
        """How far apart observations must be for the limits to last until their reset."""
        import time

        book = self.web.ledger.read()
        limits = [limit for limit in book.limits.values() if limit.bucket == CORE]
        pause = find_pause(limits, self.settings.reserve, book.blocked_until, time.time())
        # The token is read only if it matters: that may start a program.
        return pause if pause and self.web.is_limited_by(book) else 0.0

    def find_writers(self, authors: Iterable[str]) -> frozenset[str]:
        """Those of `authors` who may push to the repository."""
        return people.find_writers(self.reader, authors)

    # Issues

    def issues(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        """The issues in that state that have all of `labels`, oldest first, without comments."""
        return issues.list_issues(self.reader, state, labels)

    def issue(self, number: int) -> Issue:
        """One issue with its texts."""
        return self.reader.issue(number)

    def read_source(self, number: int) -> SourcedText:
        """Title and text of an issue. These forges do not say over REST who has edited a text."""
        found = make_issue(self.reader.issue_shape(number))
        unknown = Saved(0.0)
        return SourcedText(found.title, found.body, found.author, unknown, unknown)

    def add_issue(
        self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str
    ) -> Issue:
        """File an issue."""
        title, body = self._clean(title), self._clean(body)
        return self._written(lambda: issues.add_issue(self.reader, title, body, labels))

    def edit_issue(
        self,
        number: int,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        """Give an issue another title or text; UsageError if its text is not `instead_of`."""
        title, body = self._clean(title), None if body is None else self._clean(body)
        return self._written(
            lambda: issues.edit_issue(self.reader, number, title, body, instead_of)
        )

    def labels(self) -> set[str]:
        """Every label that an issue of the repository can have."""
        return {label.name or "" for label in self.reader.labels()}

    def close_issue(self, number: int) -> Issue:
        """Close an issue; a closed one stays so."""
        return self._written(lambda: issues.set_state(self.reader, number, IssueState.CLOSED))

    def reopen_issue(self, number: int) -> Issue:
        """Open an issue again; an open one stays so."""
        return self._written(lambda: issues.set_state(self.reader, number, IssueState.OPEN))

    def add_label(self, number: int, label: str) -> Issue:
        """Give an issue a label, if it lacks it."""
        return self._written(lambda: issues.add_label(self.reader, number, label))

    def remove_label(self, number: int, label: str) -> Issue:
        """Take a label off an issue, if it has it."""
        return self._written(lambda: issues.remove_label(self.reader, number, label))

    def read_comments(self, number: int, *, on_pull: bool = False) -> tuple[Comment, ...]:
        """The comments. These forges do not say over REST who has edited one."""
        return self.reader.comments(number, on_pull=on_pull)

    def comment(
        self, number: int, body: str, *, author: str, marker: str = "", on_pull: bool = False
    ) -> bool:
        """Comment on an issue or pull request; False if one with `marker` is there already."""
        body = self._clean(body)
        return self._written(
            lambda: issues.add_comment(self.reader, number, body, marker, on_pull=on_pull)
        )

    # Pull requests

    def is_pull(self, number: int) -> bool:
        """Whether the number is a pull request and no issue; NotFoundError if it is neither."""
        found = self.reader.ask(f"/issues/{number}", IssueShape, f"issue or pull request {number}")
        return found.pull_request is not None

    def pulls(self, state: PullState | None = None) -> tuple[list[PullRequest], list[str]]:
        """The pull requests in that state, oldest first; open ones with reviews and checks."""
        asked = {"state": PULLS.get(state, "closed"), **self.reader.oldest_first}
        found = map(make_pull, self.reader.pull_shapes(asked))
        chosen = [pull for pull in found if state in (None, pull.state)]
        chosen.sort(key=lambda pull: pull.number)
        return [self._in_play(pull) for pull in chosen], []

    def _in_play(self, pull: PullRequest) -> PullRequest:
        """An open pull request with what decides about it; others as they are."""
        if pull.state is not PullState.OPEN or is_of_fork(pull):
            return pull
        check = self.checks.read_short(pull.head, pull.base)
        return structs.replace(self.reader.pull(pull.number), check=check)

    def pull(self, number: int) -> PullRequest:
        """One pull request with its texts, its check with the failing log."""
        found = self.reader.whole_pull(number)
        return structs.replace(found, check=self.check(found.head, found.base))

    def read_reviews(self, number: int) -> tuple[Review, ...]:
        """The reviews with their texts. These forges do not say over REST who has edited one."""
        return self.reader.whole_reviews(number)

    def pull_for(self, branch: str) -> PullRequest | None:
        """The newest pull request of `branch`, without reviews and check."""
        return pulls.find_pull(self.reader, branch)

    def open_pull(
        self, branch: str, base: str, title: str, body: str = "", *, author: str
    ) -> PullRequest:
        """Offer a branch for merging; the one that is open for it, if there is one."""
        title, body = self._clean(title), self._clean(body)
        return self._written(lambda: pulls.open_pull(self.reader, branch, base, title, body))

    def close_pull(self, number: int) -> PullRequest:
        """Close a pull request unmerged; PullClosedError if it is merged."""
        return self._written(lambda: pulls.close_pull(self.reader, number))

    def submit_review(
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
        head = head or self.reader.pull_shape(number).head.sha
        remarks = [structs.replace(one, body=self._clean(one.body)) for one in comments]
        body = self._clean(body)
        return self._written(lambda: self.send_review(number, state, body, remarks, head))

    @abstractmethod
    def send_review(
        self, number: int, state: ReviewState, body: str, comments: list[InlineComment], head: str
    ) -> Review:
        """Review the commit `head` in the words of the forge."""

    def diff(self, number: int, *options: str) -> bytes:
        """What a pull request changes, as `git diff` shows it; `--stat` for an overview."""
        if "--stat" in options:
            return pulls.show_stat(pulls.list_files(self.reader, number)).encode()
        return self.read_diff(number)

    @abstractmethod
    def read_diff(self, number: int) -> bytes:
        """What a pull request changes, as a patch."""

    def files_changed(self, number: int, head: str = "") -> list[str]:
        """The files that a pull request changes up to `head`, by default its last commit."""
        if head:
            pull = make_pull(self.reader.pull_shape(number))
            if head != pull.head:
                return pulls.list_files_at(self.reader, pull, head)
        return [file.filename for file in pulls.list_files(self.reader, number)]

    def merge(self, number: int, *, author: str, head: str = "", message: str = "") -> PullRequest:
        """Merge at `head`, by default the branch's current commit; a merged one is returned.

        If the forge merges by a queue, it is put there: then it is open, and QUEUED.

        Raises:
            MergeRefusedError: it may not be merged; the subclass says why.
            AtWorkError: CI has not finished.
            BaseMovedError: the forge merges others, or is still finding out whether it can.

        """
        pull = self.reader.pull(number)
        if pull.state is PullState.MERGED:
            return pull
        if is_of_fork(pull):
            raise MergeRefusedError(
                f"pull request {number} is of a fork ('{pull.branch}'): sm merges none of those"
            )
        checked = structs.replace(pull, check=self.checks.read_short(pull.head, pull.base))
        merge_rules.refuse(checked, head, self._rules(checked))
        return self._written(lambda: self._merge(pull, self._clean(message)))

    def _merge(self, pull: PullRequest, message: str) -> PullRequest:
        try:
            if queued := self.enqueue(pull):
                return queued
            sha = self.send_merge(pull, message)
        except RefusedError as error:
            shape = self.reader.settled_shape(pull.number)
            now = make_pull(shape)
            if now.state is PullState.MERGED:
                return now
            raise pulls.explain_unmerged(pull, shape, error) from None
        now = make_pull(self.reader.pull_shape(pull.number))
        if now.state is PullState.MERGED:
            return now
        # A forge may be a moment behind itself.
        return structs.replace(now, state=PullState.MERGED, merged_as=sha)

    def enqueue(self, pull: PullRequest) -> PullRequest | None:
        """Put it into the merge queue of its base; None if that has none."""
        return None

    @abstractmethod
    def send_merge(self, pull: PullRequest, message: str) -> str:
        """Have the forge merge the pull request at its head; the commit that came of it."""

    def _rules(self, pull: PullRequest) -> merge_rules.Rules:
        named = self.settings.trusted
        authors = {review.author for review in pull.reviews}
        writers = frozenset() if named or not authors else self.find_writers(authors)
        return merge_rules.Rules(self.settings.review_required, Trust(named, writers))

    def branch_head(self, branch: str) -> str:
        """The commit of a branch, '' if there is no such branch."""
        return self.reader.branch_head(branch)

    # Checks

    @property
    def checks(self) -> Checks:
        """What reads the checks of commits, and what branches ask for."""
        return Checks(self.reader, self.files, self.settings, self._woodpecker, self.read_report)

    def check(self, head: str, base: str = "") -> Check:
        """What CI says of a commit that is to be merged into `base`, with the failing log."""
        return self.checks.read(head, base or self.settings.base)

    def find_limits(self) -> Iterator[str]:
        """What the token cannot do that stops nothing, and is good to know."""
        yield from ()

    @abstractmethod
    def read_report(self, part: Part, head: str) -> Report:
        """What is known of one failed part of the commit `head`, with its whole log."""

    def rerun_check(self, head: str) -> None:
        """Have CI run on a commit again: Woodpecker, if that has run on it, else the forge's own.

        Raises:
            AtWorkError: it is at work on the commit.
            UsageError: it cannot be run again from here.

        """
        woodpecker = self._woodpecker
        if woodpecker and self._written(lambda: woodpecker.rerun(self.reader.parts(head))):
            return
        self.rerun_jobs(head)

    @abstractmethod
    def rerun_jobs(self, head: str) -> None:
        """Have the forge's own CI run on a commit again."""

    def run_check(self, head: str, ci: Ci, work: Path) -> CheckRun | None:
        """Refused: the forge runs CI itself."""
        raise UsageError(
            f"CI of '{self.settings.repository}' is not run on this machine: it runs on each push"
        )

    # Writing

    def _clean(self, text: str) -> str:
        """`text` as it may stand where others read it: without well-known secrets and our token."""
        return redact(text, [self.web.token.secret]) if text else text

    def _written(self, write: Callable[[], T]) -> T:
        """What `write` returns. Even if it fails, the last observation is stale from now on."""
        try:
            return write()
        finally:
            self.files.note_written()
