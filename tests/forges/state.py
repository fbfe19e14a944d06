"""What a stateful forge keeps: issues, pull requests, checks, people; branches are in real git."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sm.adapters.forge.local.repository import BareRepository


def iso(at: float) -> str:
    """A moment as forges write it: to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Said:
    """A comment."""

    id: int
    author: str
    body: str
    at: float
    editor: str = ""


@dataclass
class Inline:
    """A remark on a line, of the review numbered `review`."""

    review: int
    path: str
    line: int
    body: str
    id: int = 0
    resolved: bool = False
    outdated: bool = False
    is_old_side: bool = False
    """The line is one that was removed."""
    author: str = ""
    saved: tuple[float, str] | None = None
    answers: int = 0
    """The id of the first remark of its thread, if it is not that."""
    on_file: bool = False
    """It is on no line, but on the whole file."""


@dataclass
class Opinion:
    """A review; `state` is GitHub's word."""

    id: int
    author: str
    state: str
    body: str
    head: str
    at: float
    saved: tuple[float, str] | None = None
    filed: str | None = None
    """Its text before it was edited."""


@dataclass
class Pull:
    """What a pull request has beyond an issue. `fork` is its owner, if it is one of a fork.

    `is_agit`: on Forgejo and Gitea, its commits were pushed to `refs/for/…` of the repository. Then
    `branch` is `USER/TOPIC`, and there is no such branch.
    """

    branch: str
    base: str
    head: str
    fork: str = ""
    is_agit: bool = False
    merged_at: float = 0.0
    merged_as: str = ""
    conflicts: bool = False
    merge_state: str = ""
    """What the forge says of its merge, in GitHub's word, where that is not what its checks say."""
    decision: str = ""
    is_draft: bool = False
    place: int = 0
    """In the merge queue."""
    dropped: str = ""
    """Why it was removed from there."""
    reviews: list[Opinion] = field(default_factory=list)
    inline: list[Inline] = field(default_factory=list)
    pushes: int = 0
    """How often its branch was pushed since it was opened."""


@dataclass
class Entry:
    """An issue or a pull request."""

    number: int
    title: str
    body: str
    author: str
    at: float
    updated: float
    is_open: bool = True
    closed_at: float = 0.0
    labels: list[str] = field(default_factory=list)
    comments: list[Said] = field(default_factory=list)
    pull: Pull | None = None
    titled: tuple[float, str] | None = None
    written: tuple[float, str] | None = None
    labelled: list[tuple[float, str, str]] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)


@dataclass
class Run:
    """A check run, which is a job of GitHub Actions too."""

    id: int
    head: str
    name: str
    word: str = ""
    at: float = 0.0
    log: str = ""
    app: str = "github-actions"
    workflow: str = "ci"
    again: int = 0
    """The workflow was begun so often before on this commit: each time GitHub makes a suite."""
    text: str = ""
    steps: list[tuple[str, str]] | None = None
    """Its steps and their conclusions; None: the one that the state of the run implies."""
    notes: list[str] = field(default_factory=list)
    """What its annotations say."""
    may_fail: bool = False
    reason: str = ""
    was_retried: bool = False
    """There is a later try of the same."""
    job: str = ""
    """Its name in the list of jobs, if that is another one than in the list of statuses."""
    child: str = ""
    """The `workflow` of the pipeline that it has begun, on GitLab."""
    of_fork: bool = False
    """It has run for a pull request of a fork that is at the same commit."""
    event: str = "pull_request"
    is_bare: bool = False
    """Its workflow has no job: it could not begin, or waits for a person."""

    @property
    def suite(self) -> int:
        """The id of its suite on GitHub, where each run of a workflow has one."""
        origin = f"{self.app} {self.workflow} {self.again} {self.of_fork}"
        return zlib.crc32(f"{self.head} {origin}".encode())


@dataclass
class Status:
    """A commit status."""

    id: int
    head: str
    context: str
    word: str
    at: float
    text: str = ""
    url: str = "https://ci.example.com/1"


@dataclass
class State:
    """Everything. `tokens` tells whose each of them is."""

    repository: BareRepository
    name: str = "harbor/harb"
    id: int = 4711
    former: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    writers: set[str] = field(default_factory=set)
    labels: list[str] = field(default_factory=list)
    entries: dict[int, Entry] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    reruns: list[str] = field(default_factory=list)
    clock: Callable[[], float] = time.time
    last_id: int = 100
    last_number: int = 0
    apart: bool = False
    """Issues and pull requests have numbers of their own; pull requests are kept under -number."""
    last_pull: int = 0
    tried: dict[tuple[str, str], bool] = field(default_factory=dict)
    protected: list[str] = field(default_factory=list)
    """The checks that the protection of the base requires."""
    rules: list[dict[str, Any]] = field(default_factory=list)
    """The rules of rulesets that hold for it, as GitHub writes them."""
    approvals: int = 0
    has_queue: bool = False
    """Pull requests are merged by a queue."""
    blocked_by: dict[int, list[int]] = field(default_factory=dict)
    """What each issue depends on by the forge's own means."""
    flags: dict[str, Any] = field(default_factory=dict)
    """What the repository says of itself besides, such as how it may be merged into."""
    unsure: bool = False
    """It has not found out of any pull request whether it conflicts."""

    def heads(self) -> dict[str, str]:
        """The branches and their commits, read off the files.

        A git for each request would be most of what the tests of the forges do.
        """
        found = dict[str, str]()
        folder = self.repository.path
        loose = [path for path in (folder / "refs" / "heads").rglob("*") if path.is_file()]
        with contextlib.suppress(FileNotFoundError):
            for line in (folder / "packed-refs").read_text().splitlines():
                commit, _, name = line.partition(" refs/heads/")
                if name:
                    found[name] = commit
        for path in loose:
            with contextlib.suppress(FileNotFoundError):
                name = str(path.relative_to(folder / "refs" / "heads"))
                if not name.endswith(".lock"):
                    found[name] = path.read_text().strip()
        return dict(sorted(found.items()))

    def next_id(self) -> int:
        """An id that nothing has."""
        self.last_id += 1
        return self.last_id

    def add(self, title: str, body: str, author: str, pull: Pull | None = None) -> Entry:
        """A new issue or pull request."""
        now, is_apart = self.clock(), self.apart and pull is not None
        if is_apart:
            self.last_pull += 1
        else:
            self.last_number += 1
        number = self.last_pull if is_apart else self.last_number
        entry = Entry(number, title, body, author, now, now, pull=pull)
        self.entries[-number if is_apart else number] = entry
        return entry

    def touch(self, entry: Entry) -> None:
        """It has changed now."""
        entry.updated = self.clock()

    def edit(self, entry: Entry, who: str, title: str | None, body: str | None) -> None:
        """Save another title or text."""
        if title is not None and title != entry.title:
            entry.title, entry.titled = title, (self.clock(), who)
        if body is not None and body != entry.body:
            entry.body, entry.written = body, (self.clock(), who)
        self.touch(entry)

    def edit_review(self, pull: Pull, who: str, old: str, new: str) -> None:
        """Save another text of a review, or of a remark; no list has a trace of that."""
        for opinion in pull.reviews:
            if opinion.body == old:
                opinion.filed, opinion.body = old, new
                opinion.saved = self.clock(), who
        for remark in pull.inline:
            if remark.body == old:
                remark.body, remark.saved = new, (self.clock(), who)

    def label(self, entry: Entry, names: list[str], who: str = "") -> None:
        """Give labels, made if there are none of that name."""
        new = [name for name in names if name not in entry.labels]
        entry.labelled += [(self.clock(), who, name) for name in new]
        entry.labels = list(dict.fromkeys([*entry.labels, *names]))
        self.labels = list(dict.fromkeys([*self.labels, *names]))
        self.touch(entry)

    def say(self, entry: Entry, author: str, body: str) -> Said:
        """Comment."""
        said = Said(self.next_id(), author, body, self.clock())
        entry.comments.append(said)
        self.touch(entry)
        return said

    def pulls(self) -> Iterator[tuple[Entry, Pull]]:
        """Every pull request."""
        for entry in self.entries.values():
            if entry.pull:
                yield entry, entry.pull

    def follow_branches(self) -> None:
        """What a push changes: the head of a pull request, and whether it conflicts."""
        heads = self.heads()
        for entry, pull in self.pulls():
            if entry.is_open and not (pull.fork or pull.is_agit):
                head = heads.get(pull.branch, pull.head)
                if head != pull.head:
                    pull.head = head
                    pull.pushes += 1
                    self.touch(entry)
                pull.conflicts = self._conflict(heads[pull.base], head)

    def _conflict(self, base: str, head: str) -> bool:
        """Whether two commits conflict, which never changes."""
        if (base, head) not in self.tried:
            self.tried[base, head] = bool(self.repository.try_merge(base, head).conflicts)
        return self.tried[base, head]

    def close(self, entry: Entry, *, is_open: bool = False) -> None:
        """Close or open it."""
        if entry.is_open != is_open:
            entry.is_open, entry.closed_at = is_open, 0.0 if is_open else self.clock()
            self.touch(entry)

    def merge(self, entry: Entry, message: str, author: str, *, forwards: bool = False) -> str:
        """Merge a pull request; the commit. `forwards`: it has all of its base, and moves that."""
        pull = entry.pull
        assert pull
        old = self.heads()[pull.base]
        tried = self.repository.try_merge(old, pull.head)
        parents = (old, pull.head)
        made = pull.head
        if not forwards:
            made = self.repository.commit_merge(tried.tree, parents, message, author)
        self.repository.advance(pull.base, made, old, pull.branch, pull.head)
        pull.merged_as, pull.merged_at = made, self.clock()
        self.close(entry)
        return made

    def run_of(self, head: str, name: str) -> Run:
        """The check run of that name, made if there is none."""
        found = next((one for one in self.runs if (one.head, one.name) == (head, name)), None)
        if found is None:
            found = Run(self.next_id(), head, name, at=self.clock())
            self.runs.append(found)
        return found


def page_of(items: list[Any], query: dict[str, str], most: int = 100) -> tuple[list[Any], bool]:
    """A page of a list, and whether there is another one."""
    size = min(int(query.get("per_page", query.get("limit", "30"))), most)
    start = (int(query.get("page", "1")) - 1) * size
    return items[start : start + size], start + size < len(items)
