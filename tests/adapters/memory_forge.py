"""A second forge, in memory: small, elsewhere, and with cursors, as forges over HTTP are.

`Server` holds the state and counts the requests, `MemoryForge` is the client. The branches are in
a real bare repository, as agents push with git whatever the forge is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from sm.adapters.forge.errors import (
    HeadMovedError,
    NotFoundError,
    NothingToMergeError,
    PullClosedError,
)
from sm.adapters.forge.local.repository import BareRepository
from sm.adapters.forge.model import (
    NO_CHECK,
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
    Saved,
    SourcedText,
    authors_in,
)
from sm.base.errors import UsageError
from sm.config.forges import ForgeSettings
from sm.config.schema import ProjectSettings

T = TypeVar("T", bound=Issue | PullRequest)
CURSOR = "cursor"


@dataclass
class Server:
    """The state. Everything has the number of the change that touched it last."""

    repository: BareRepository
    writers: set[str] = field(default_factory=set)
    issues: dict[int, Issue] = field(default_factory=dict)
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    changed: dict[int, int] = field(default_factory=dict)
    clock: int = 0
    requests: list[str] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    """The numbers of what observations were told."""

    def put(self, value: Issue | PullRequest) -> None:
        """Keep a value, as changed now."""
        self.clock += 1
        self.changed[value.number] = self.clock
        if isinstance(value, Issue):
            self.issues[value.number] = value
        else:
            self.pulls[value.number] = value

    def follow_branches(self) -> None:
        """What a push changes: the head of a pull request, and whether it conflicts."""
        heads = self.repository.heads()
        for pull in list(self.pulls.values()):
            if pull.state is PullState.OPEN:
                head = heads.get(pull.branch, pull.head)
                tried = self.repository.try_merge(heads[pull.base], head)
                now = structs.replace(pull, head=head, conflicts=bool(tried.conflicts))
                if now != pull:
                    self.put(now)

    def finish(self, check: Check) -> None:
        """CI has come to an end."""
        self.checks[check.head] = check
        for pull in list(self.pulls.values()):
            if pull.head == check.head:
                self.put(pull)

    def with_check(self, pull: PullRequest) -> PullRequest:
        """As it is told: with what CI says of its head."""
        known = self.checks.get(pull.head, Check(CheckState.PENDING, pull.head))
        return structs.replace(pull, check=known)

    def next_number(self) -> int:
        """A number that nothing has."""
        return len(self.issues) + len(self.pulls) + 1


@dataclass(frozen=True)
class Asking:
    """What asks a server: nothing is remembered between two calls."""

    server: Server

    def _ask(self, what: str) -> Server:
        self.server.requests.append(what)
        self.server.follow_branches()
        return self.server

    def comment(self, number: int, body: str, *, author: str, marker: str = "") -> bool:
        server = self._ask("comment")
        value: Issue | PullRequest
        value = server.issues[number] if number in server.issues else _at(server.pulls, number)
        if marker and any(comment.marker == marker for comment in value.comments):
            return False
        said = Comment(author, time.time(), body, marker)
        server.put(structs.replace(value, comments=(*value.comments, said)))
        return True


@dataclass(frozen=True)
class MemoryIssues(Asking):
    """Its issues."""

    def find(
        self, state: IssueState | None = None, labels: Iterable[str] = ()
    ) -> tuple[list[Issue], list[str]]:
        every, wanted = self._ask("issues").issues.values(), set(labels)
        found = [one for one in every if state in (None, one.state) and wanted <= set(one.labels)]
        return found, []

    def read(self, number: int) -> Issue:
        return _at(self._ask("issue").issues, number)

    def read_source(self, number: int) -> SourcedText:
        found = self.read(number)
        saved = Saved(found.at, found.author)
        return SourcedText(found.title, found.body, found.author, saved, saved)

    def add(self, title: str, body: str = "", labels: Iterable[str] = (), *, author: str) -> Issue:
        number, labels = self._ask("add_issue").next_number(), tuple(labels)
        made = Issue(number, title, IssueState.OPEN, author, time.time(), labels, body)
        self.server.put(made)
        return made

    def edit(
        self,
        number: int,
        *,
        title: str = "",
        body: str | None = None,
        instead_of: str | None = None,
    ) -> Issue:
        known = self.read(number)
        if instead_of is not None and known.body != instead_of:
            raise UsageError(f"the text of issue {number} has changed meanwhile")
        body = known.body if body is None else body
        return self._edit(number, title=title or known.title, body=body)

    def list_labels(self) -> set[str]:
        return {label for issue in self._ask("labels").issues.values() for label in issue.labels}

    def close(self, number: int) -> Issue:
        return self._edit(number, state=IssueState.CLOSED)

    def reopen(self, number: int) -> Issue:
        return self._edit(number, state=IssueState.OPEN)

    def add_label(self, number: int, label: str) -> Issue:
        labels = _at(self.server.issues, number).labels
        return self._edit(number, labels=tuple(dict.fromkeys((*labels, label))))

    def remove_label(self, number: int, label: str) -> Issue:
        labels = _at(self.server.issues, number).labels
        return self._edit(number, labels=tuple(one for one in labels if one != label))

    def _edit(self, number: int, **fields: object) -> Issue:
        server = self._ask("edit")
        known = _at(server.issues, number)
        edited = structs.replace(known, **fields)
        if edited != known:
            server.put(edited)
        return edited

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        return _at(self._ask("read_comments").issues, number).comments


@dataclass(frozen=True)
class MemoryPulls(Asking):
    """Its pull requests."""

    def find(self, state: PullState | None = None) -> tuple[list[PullRequest], list[str]]:
        server = self._ask("pulls")
        found = [server.with_check(one) for one in server.pulls.values()]
        return [one for one in found if state in (None, one.state)], []

    def read(self, number: int) -> PullRequest:
        server = self._ask("pull")
        return server.with_check(_at(server.pulls, number))

    def read_reviews(self, number: int) -> tuple[Review, ...]:
        return _at(self._ask("read_reviews").pulls, number).reviews

    def find_newest(self, branch: str) -> PullRequest | None:
        found = [pull for pull in self.find()[0] if pull.branch == branch]
        return found[-1] if found else None

    def open(
        self, branch: str, base: str, title: str, body: str = "", *, author: str
    ) -> PullRequest:
        server = self._ask("open_pull")
        for pull in server.pulls.values():
            if pull.branch == branch and pull.state is PullState.OPEN:
                return server.with_check(pull)
        heads = server.repository.heads()
        if branch not in heads or base not in heads:
            raise NotFoundError(f"there is no branch '{branch}' or no '{base}': push it first")
        if server.repository.contains(heads[base], heads[branch]):
            raise NothingToMergeError(f"'{branch}' has nothing that '{base}' lacks")
        number, at = server.next_number(), time.time()
        head, state = heads[branch], PullState.OPEN
        server.put(PullRequest(number, title, state, author, at, branch, base, head, body))
        return self.read(number)

    def close(self, number: int) -> PullRequest:
        known = self.read(number)
        if known.state is PullState.MERGED:
            raise PullClosedError(f"pull request {number} is merged")
        if known.state is PullState.OPEN:
            self.server.put(structs.replace(known, state=PullState.CLOSED, closed_at=time.time()))
        return self.read(number)

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
        known = self.read(number)
        ident, head = f"r{self.server.clock}", head or known.head
        made = Review(ident, author, time.time(), state, head, body, tuple(comments))
        self.server.put(structs.replace(known, check=NO_CHECK, reviews=(*known.reviews, made)))
        return made

    def read_head(self, number: int) -> str:
        return self.read(number).head

    def count_commits(self, number: int, since: str) -> int:
        repository = self.server.repository
        return repository.count_between(repository.resolve(since), self.read(number).head)

    def diff(self, number: int, *, stat: bool = False, limit: int | None = None) -> bytes:
        pull = self.read(number)
        return self.server.repository.diff(
            f"refs/heads/{pull.base}", pull.head, *(["--stat"] if stat else []), limit=limit
        )

    def list_files(self, number: int, head: str = "") -> list[str]:
        pull = self.read(number)
        return self.server.repository.files_changed(f"refs/heads/{pull.base}", head or pull.head)

    def merge(self, number: int, *, author: str, head: str = "", message: str = "") -> PullRequest:
        known, repository = self.read(number), self.server.repository
        if known.state is PullState.MERGED:
            return known
        if known.state is PullState.CLOSED:
            raise PullClosedError(f"pull request {number} is closed")
        if head and head != known.head:
            raise HeadMovedError(f"'{known.branch}' is not at {head[:12]} any more")
        old = repository.heads()[known.base]
        tried = repository.try_merge(old, known.head)
        made = repository.commit_merge(tried.tree, (old, known.head), message or "Merge", author)
        repository.advance(known.base, made, old, known.branch, known.head)
        ended = structs.replace(known, state=PullState.MERGED, merged_as=made)
        self.server.put(structs.replace(ended, closed_at=time.time()))
        return self.read(number)

    def read_comments(self, number: int) -> tuple[Comment, ...]:
        return _at(self._ask("read_comments").pulls, number).comments


@dataclass(frozen=True)
class MemoryChecks(Asking):
    """What its CI says."""

    def read(self, head: str) -> Check:
        return self._ask("check").checks.get(head, Check(CheckState.PENDING, head))

    def rerun(self, head: str) -> None:
        self._ask("rerun_check").finish(Check(CheckState.PENDING, head, at=time.time()))


@dataclass(frozen=True)
class MemoryForge(Asking):
    """The client."""

    def observe(self, since: Batch | None = None, *, start_checks: bool = True) -> Batch:
        server = self._ask("observe")
        after = int(since.validators.get(CURSOR, "0")) if since else 0
        new = {number for number, at in server.changed.items() if at > after}
        server.sent += sorted(new)
        issues = [one for number, one in server.issues.items() if number in new]
        pulls = [
            structs.replace(told, check=structs.replace(told.check, log=""))
            for number, one in server.pulls.items()
            if number in new
            for told in (server.with_check(one),)
        ]
        writers = authors_in(issues, pulls) & server.writers
        return Batch(
            issues=_merged(since.issues if since else (), issues),
            pulls=_merged(since.pulls if since else (), pulls),
            writers=tuple(sorted({*writers, *(since.writers if since else ())})),
            validators={CURSOR: str(server.clock)},
        )

    def is_stale(self, since: Batch) -> bool:
        return False

    def pause_s(self, sharers: int = 1) -> float:
        return 0.0

    def find_writers(self, authors: Iterable[str]) -> frozenset[str]:
        return frozenset(self._ask("find_writers").writers & set(authors))

    def is_pull(self, number: int) -> bool:
        server = self._ask("is_pull")
        if number not in server.issues:
            _at(server.pulls, number)
        return number in server.pulls

    def branch_head(self, branch: str) -> str:
        return self._ask("branch_head").repository.heads().get(branch, "")

    @property
    def issues(self) -> MemoryIssues:
        return MemoryIssues(self.server)

    @property
    def pulls(self) -> MemoryPulls:
        return MemoryPulls(self.server)

    @property
    def checks(self) -> MemoryChecks:
        return MemoryChecks(self.server)


def _merged(known: Iterable[T], new: Iterable[T]) -> tuple[T, ...]:
    """What is known, with what is new in its place, oldest first."""
    found = {one.number: one for one in (*known, *new)}
    return tuple(found[number] for number in sorted(found))


def _at(values: dict[int, T], number: int) -> T:
    if number not in values:
        raise NotFoundError(f"there is no {number}")
    return values[number]


class MemorySettings(ForgeSettings, frozen=True, tag="memory"):
    """A server of this process."""

    name: str

    @property
    def place(self) -> str:
        """Its name."""
        return self.name


SERVERS: dict[str, Server] = {}
"""By name: what a URL would lead to."""


def open_forge(
    project: ProjectSettings, config: Path | None = None, state: Path | None = None
) -> MemoryForge:
    """The forge of a project with `MemorySettings`."""
    assert isinstance(project.forge, MemorySettings)
    return MemoryForge(SERVERS[project.forge.name])


def find_problems(project: ProjectSettings, url: str) -> Iterator[str]:
    """Nothing but a server that is not there."""
    assert isinstance(project.forge, MemorySettings)
    if project.forge.name not in SERVERS:
        yield f"there is no server '{project.forge.name}'"


def expect_webhooks(settings: ForgeSettings, state: Path | None = None) -> None:
    """It delivers no webhooks."""
    return


def prepare(settings: ForgeSettings, repository: Path) -> list[str]:
    """Start the server."""
    assert isinstance(settings, MemorySettings)
    SERVERS[settings.name] = Server(BareRepository(repository))
    return [f"made the server '{settings.name}'"]
