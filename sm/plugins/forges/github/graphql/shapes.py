"""Answers of GitHub's GraphQL interface to our queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec import Raw, Struct, field

from sm.plugins.forges.github.shapes import App
from sm.plugins.forges.rest.shapes import Number, Sha, Whole

T = TypeVar("T")
Ident = str | int | None
"""The id of REST. GraphQL writes it as text, as it has outgrown its own whole numbers."""


def there(nodes: Iterable[T | None] | None) -> list[T]:
    """The elements of a list that are there: by GitHub's schema any may be null, and the list."""
    return [one for one in nodes or () if one is not None]


def is_told(nodes: Sequence[object | None] | None) -> bool:
    """Whether each element of a list is told."""
    return nodes is not None and None not in nodes


class Actor(Struct, frozen=True, rename="camel"):
    """An account. GraphQL leaves out the "[bot]" that REST puts behind the name of an app."""

    login: str = ""
    kind: str = field(default="User", name="__typename")


class Oid(Struct, frozen=True):
    """A commit."""

    oid: Sha = ""


class PageInfo(Struct, frozen=True, rename="camel"):
    """Whether there is more behind a page or before it, and where that begins."""

    has_next_page: bool = False
    end_cursor: str | None = None
    has_previous_page: bool = False
    start_cursor: str | None = None

    @property
    def beyond(self) -> str | None:
        """The cursor for the page beyond this one; None if there is none.

        A query asks for the pages of a list in one direction alone, and only of that it is told.
        """
        if self.has_next_page:
            return self.end_cursor or ""
        return (self.start_cursor or "") if self.has_previous_page else None


class ReviewNode(Struct, frozen=True, rename="camel"):
    """A review, with as much as was asked for. `id` is GraphQL's own."""

    state: str
    id: str = ""
    full_database_id: Ident = None
    author: Actor | None = None
    author_can_push_to_repository: bool = False
    submitted_at: str | None = None
    commit: Oid | None = None
    body: str = ""
    last_edited_at: str | None = None
    editor: Actor | None = None
    comments: Remarks | None = None


class Reviews(Struct, frozen=True, rename="camel"):
    """The last reviews."""

    nodes: list[ReviewNode | None] | None = None
    page_info: PageInfo = PageInfo()

    @property
    def is_whole(self) -> bool:
        """Whether these are all reviews."""
        return is_told(self.nodes) and not self.page_info.has_previous_page


class WorkflowNode(Struct, frozen=True):
    """A workflow, by its file: two files may have one name."""

    id: str = ""
    name: str = ""


class WorkflowRun(Struct, frozen=True):
    """A run of a workflow."""

    event: str = ""
    workflow: WorkflowNode | None = None
    url: str = ""

    @property
    def key(self) -> str:
        """A key that two runs of the same workflow share."""
        return f"{self.workflow.id if self.workflow else ''}/{self.event}"


class CheckSuite(Struct, frozen=True, rename="camel"):
    """A suite of check runs. A workflow that could not begin has a suite without any."""

    app: App | None = None
    workflow_run: WorkflowRun | None = None
    status: str = ""
    conclusion: str | None = None
    updated_at: str | None = None


class Suites(Struct, frozen=True):
    """Check suites of a commit."""

    nodes: list[CheckSuite | None] | None = None


class Context(Struct, frozen=True, rename="camel"):
    """A check run (`name`, `status`, `conclusion`) or a commit status (`context`, `state`)."""

    name: str = ""
    status: str = ""
    conclusion: str | None = None
    details_url: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    check_suite: CheckSuite | None = None
    context: str = ""
    state: str = ""
    target_url: str | None = None
    created_at: str | None = None


class StateCount(Struct, frozen=True):
    """The number of checks in one state."""

    state: str = ""
    count: int = 0


class Contexts(Struct, frozen=True, rename="camel"):
    """Checks and statuses of a commit, 100 at most."""

    nodes: list[Context | None] | None = None
    page_info: PageInfo = PageInfo()
    check_run_counts_by_state: list[StateCount] | None = None
    status_context_counts_by_state: list[StateCount] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether these are all of them."""
        return is_told(self.nodes) and not self.page_info.has_next_page

    @property
    def progress(self) -> str:
        """The counts of all states, in a word."""
        counts = (self.check_run_counts_by_state, self.status_context_counts_by_state)
        return "/".join(
            ",".join(sorted(f"{one.state}:{one.count}" for one in some or ())) for some in counts
        )


class Rollup(Struct, frozen=True):
    """The combined state of all checks of a commit, in a word, and these checks."""

    state: str = ""
    contexts: Contexts | None = None


class CommitNode(Struct, frozen=True, rename="camel"):
    """A commit and what CI says of it."""

    oid: Sha = ""
    status_check_rollup: Rollup | None = None
    check_suites: Suites | None = None


class CommitLink(Struct, frozen=True):
    """A commit of a pull request."""

    commit: CommitNode


class Commits(Struct, frozen=True):
    """The last commit of a pull request."""

    nodes: list[CommitLink | None] | None = None


class QueueEntry(Struct, frozen=True):
    """The place of a pull request in a merge queue."""

    position: int = 0
    state: str = ""


class Removal(Struct, frozen=True):
    """The removal of a pull request from a merge queue."""

    reason: str | None = None


class Removals(Struct, frozen=True):
    """The last of them."""

    nodes: list[Removal | None] | None = None


class RemarkLink(Struct, frozen=True, rename="camel"):
    """A remark that is named by another thing."""

    full_database_id: Ident = None


class Remark(Struct, frozen=True, rename="camel"):
    """A remark on a line; `line` is null once its code is gone. It may answer another one."""

    full_database_id: Ident = None
    path: str = ""
    line: int | None = None
    original_line: int | None = None
    outdated: bool = False
    body: str = ""
    diff_hunk: str | None = None
    last_edited_at: str | None = None
    editor: Actor | None = None
    reply_to: RemarkLink | None = None


class Remarks(Struct, frozen=True, rename="camel"):
    """The remarks of a review, or of a thread."""

    nodes: list[Remark | None] | None = None
    page_info: PageInfo = PageInfo()


class ReviewThread(Struct, frozen=True, rename="camel"):
    """Remarks on one line that answer one another, of which the first is read."""

    is_resolved: bool = False
    comments: Remarks = Remarks()


class Threads(Struct, frozen=True, rename="camel"):
    """The threads of all reviews."""

    nodes: list[ReviewThread | None] | None = None
    page_info: PageInfo = PageInfo()


class GraphqlFault(Struct, frozen=True):
    """Something that a query has not found, or more; `path` leads to what is null for it."""

    message: str | None = ""
    type: str | None = ""
    code: str | None = ""
    path: list[str | int] | None = None


class EnqueuePayload(Struct, frozen=True, rename="camel"):
    """The new place of a pull request."""

    merge_queue_entry: QueueEntry | None = None


class EnqueueData(Struct, frozen=True, rename="camel"):
    """The data of such an answer."""

    enqueue_pull_request: EnqueuePayload | None = None


class GraphqlAnswer(Struct, frozen=True):
    """An answer. There may be errors beside what was found."""

    errors: list[GraphqlFault] | None = None

    @property
    def faults(self) -> list[GraphqlFault]:
        """The errors."""
        return self.errors or []


class TokenAccount(Struct, frozen=True):
    """The account whose token we have."""

    viewer: Actor | None = None


class Viewed(GraphqlAnswer, frozen=True):
    """The answer to the question for it."""

    data: TokenAccount | None = None


class EnqueueResult(GraphqlAnswer, frozen=True):
    """The answer to the request to queue it."""

    data: EnqueueData | None = None


class PullNode(Struct, frozen=True, rename="camel"):
    """A pull request, with as much as was asked for."""

    number: Number
    state: str
    head_ref_oid: Sha = ""
    mergeable: str = "UNKNOWN"
    title: str = ""
    is_cross_repository: bool = False
    created_at: str = ""
    closed_at: str | None = None
    updated_at: str = ""
    head_ref_name: str = ""
    base_ref_name: str = ""
    author: Actor | None = None
    head_repository_owner: Actor | None = None
    merge_commit: Oid | None = None
    reviews: Reviews | None = None
    commits: Commits | None = None
    status_check_rollup: Rollup | None = None
    is_draft: bool = False
    merge_state_status: str = "UNKNOWN"
    review_decision: str | None = None
    is_in_merge_queue: bool = False
    merge_queue_entry: QueueEntry | None = None
    id: str = ""
    is_merge_queue_enabled: bool = False
    timeline_items: Removals | None = None
    review_threads: Threads | None = None

    @property
    def dropped(self) -> str:
        """Why it was last removed from the merge queue, '' if it never was."""
        nodes = there(self.timeline_items.nodes) if self.timeline_items else []
        return (nodes[-1].reason or "GitHub does not say why") if nodes else ""

    @property
    def rollup(self) -> Rollup | None:
        """The combined checks of the last commit."""
        found = self._commit.status_check_rollup if self._commit else None
        return found or self.status_check_rollup

    @property
    def suites(self) -> list[CheckSuite]:
        """The suites of the last commit, if they were asked for."""
        found = self._commit.check_suites if self._commit else None
        return there(found.nodes) if found else []

    @property
    def _commit(self) -> CommitNode | None:
        links = there(self.commits.nodes) if self.commits else []
        return links[-1].commit if links else None

    @property
    def progress(self) -> str:
        """A word that changes as single checks come to an end."""
        return self.rollup.contexts.progress if self.rollup and self.rollup.contexts else ""


class CommentNode(Struct, frozen=True, rename="camel"):
    """A comment. Ours may bear marks."""

    body: str = ""
    created_at: str = ""
    viewer_did_author: bool = False
    author: Actor | None = None
    last_edited_at: str | None = None
    editor: Actor | None = None


class CommentPage(Struct, frozen=True, rename="camel"):
    """The last comments."""

    nodes: list[CommentNode | None] | None = None
    page_info: PageInfo = PageInfo()


class LabelName(Struct, frozen=True):
    """A label."""

    name: str = ""


class TimelineNode(Struct, frozen=True, rename="camel"):
    """An event of an issue: who has done what to it."""

    created_at: str = ""
    actor: Actor | None = None
    label: LabelName | None = None


class PullTimeline(Struct, frozen=True):
    """The last such things of a kind."""

    nodes: list[TimelineNode | None] | None = None


class IssueNode(Struct, frozen=True, rename="camel"):
    """An issue, with as much as was asked for."""

    number: Number
    comments: CommentPage | None = None
    title: str = ""
    body: str = ""
    created_at: str = ""
    author: Actor | None = None
    last_edited_at: str | None = None
    editor: Actor | None = None
    renamed: PullTimeline | None = None
    labelled: PullTimeline | None = None


class Cost(Struct, frozen=True):
    """Points that a query took from the limit."""

    cost: Whole = 1


class Data(Struct, frozen=True, rename="camel"):
    """Pull requests or issues by their aliases, each still to be read."""

    rate_limit: Cost | None = None
    repository: dict[str, Raw] | None = None


class QueryAnswer(GraphqlAnswer, frozen=True):
    """The answer to a query for them."""

    data: Data | None = None


class NodesData(Struct, frozen=True, rename="camel"):
    """Things that were asked for by their ids, each still to be read."""

    rate_limit: Cost | None = None
    nodes: list[Raw] | None = None


class Nodes(GraphqlAnswer, frozen=True):
    """The answer to a query for them."""

    data: NodesData | None = None
