"""What GitHub's GraphQL interface answers to our queries."""

from __future__ import annotations

from msgspec import Raw, Struct, field

from sm.adapters.forge.rest.shapes import Number, Sha, Whole


class Actor(Struct, frozen=True, rename="camel"):
    """An account. GraphQL leaves out the "[bot]" that REST puts behind the name of an app."""

    login: str = ""
    kind: str = field(default="User", name="__typename")


class Oid(Struct, frozen=True):
    """A commit."""

    oid: Sha = ""


class ReviewNode(Struct, frozen=True, rename="camel"):
    """A review."""

    state: str
    database_id: int | None = None
    author: Actor | None = None
    submitted_at: str | None = None
    commit: Oid | None = None
    body: str = ""
    last_edited_at: str | None = None
    editor: Actor | None = None


class Reviews(Struct, frozen=True):
    """The last reviews."""

    nodes: list[ReviewNode] = []


class Workflow(Struct, frozen=True):
    """A workflow."""

    name: str = ""


class WorkflowRun(Struct, frozen=True):
    """A run of a workflow."""

    event: str = ""
    workflow: Workflow | None = None


class App(Struct, frozen=True):
    """The program that a check run is of."""

    slug: str = ""


class CheckSuite(Struct, frozen=True, rename="camel"):
    """Where a check run belongs."""

    app: App | None = None
    workflow_run: WorkflowRun | None = None


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


class PageInfo(Struct, frozen=True, rename="camel"):
    """Whether there is more."""

    has_next_page: bool = False


class StateCount(Struct, frozen=True):
    """How many checks are in one state."""

    state: str = ""
    count: int = 0


class Contexts(Struct, frozen=True, rename="camel"):
    """All that CI says of a commit, 100 at most."""

    nodes: list[Context] = []
    page_info: PageInfo = PageInfo()
    check_run_counts_by_state: list[StateCount] | None = None
    status_context_counts_by_state: list[StateCount] | None = None

    @property
    def progress(self) -> str:
        """How many are in which state, in a word."""
        counts = (self.check_run_counts_by_state, self.status_context_counts_by_state)
        return "/".join(
            ",".join(sorted(f"{one.state}:{one.count}" for one in some or ())) for some in counts
        )


class Rollup(Struct, frozen=True):
    """The same in a word."""

    state: str = ""
    contexts: Contexts | None = None


class CommitNode(Struct, frozen=True, rename="camel"):
    """A commit and what CI says of it."""

    oid: Sha = ""
    status_check_rollup: Rollup | None = None


class CommitLink(Struct, frozen=True):
    """A commit of a pull request."""

    commit: CommitNode


class Commits(Struct, frozen=True):
    """The last commit of a pull request."""

    nodes: list[CommitLink] = []


class QueueEntry(Struct, frozen=True):
    """Where a pull request stands in a merge queue."""

    position: int = 0
    state: str = ""


class Removal(Struct, frozen=True):
    """That a pull request was removed from a merge queue."""

    reason: str | None = None


class Removals(Struct, frozen=True):
    """The last of them."""

    nodes: list[Removal] = []


class ReviewLink(Struct, frozen=True, rename="camel"):
    """The review that a remark belongs to."""

    database_id: int | None = None


class Remark(Struct, frozen=True, rename="camel"):
    """A remark on a line."""

    database_id: int | None = None
    body: str = ""
    diff_hunk: str | None = None
    author: Actor | None = None
    last_edited_at: str | None = None
    editor: Actor | None = None
    pull_request_review: ReviewLink | None = None


class Remarks(Struct, frozen=True):
    """The remarks of a thread."""

    nodes: list[Remark] = []


class Thread(Struct, frozen=True, rename="camel"):
    """Remarks on one line that answer one another; `line` is null once its code is gone."""

    is_resolved: bool = False
    is_outdated: bool = False
    path: str = ""
    line: int | None = None
    original_line: int | None = None
    comments: Remarks = Remarks()


class Threads(Struct, frozen=True):
    """The threads of all reviews, 100 at most."""

    nodes: list[Thread] = []


class Fault(Struct, frozen=True):
    """Something that a query has not found, or more."""

    message: str = ""
    type: str = ""


class EnqueuePayload(Struct, frozen=True, rename="camel"):
    """Where a pull request stands now."""

    merge_queue_entry: QueueEntry | None = None


class EnqueueData(Struct, frozen=True, rename="camel"):
    """What came of it."""

    enqueue_pull_request: EnqueuePayload | None = None


class EnqueueResult(Struct, frozen=True):
    """The answer to the request to queue it."""

    data: EnqueueData | None = None
    errors: list[Fault] = []


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
    head_ref_name: str = ""
    base_ref_name: str = ""
    author: Actor | None = None
    head_repository_owner: Actor | None = None
    merge_commit: Oid | None = None
    reviews: Reviews | None = None
    commits: Commits | None = None
    status_check_rollup: Rollup | None = None
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
        nodes = self.timeline_items.nodes if self.timeline_items else []
        return (nodes[-1].reason or "GitHub does not say why") if nodes else ""

    @property
    def rollup(self) -> Rollup | None:
        """What CI says of the last commit."""
        links = self.commits.nodes if self.commits else []
        return links[-1].commit.status_check_rollup if links else self.status_check_rollup

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


class Comments(Struct, frozen=True):
    """The last comments."""

    nodes: list[CommentNode] = []


class LabelName(Struct, frozen=True):
    """A label."""

    name: str = ""


class TimelineNode(Struct, frozen=True, rename="camel"):
    """An event of an issue: who has done what to it."""

    created_at: str = ""
    actor: Actor | None = None
    label: LabelName | None = None


class Timeline(Struct, frozen=True):
    """The last such things of a kind."""

    nodes: list[TimelineNode] = []


class IssueNode(Struct, frozen=True, rename="camel"):
    """An issue, with as much as was asked for."""

    number: Number
    comments: Comments | None = None
    title: str = ""
    body: str = ""
    created_at: str = ""
    author: Actor | None = None
    last_edited_at: str | None = None
    editor: Actor | None = None
    renamed: Timeline | None = None
    labelled: Timeline | None = None


class Cost(Struct, frozen=True):
    """What a query took from the limit, in points."""

    cost: Whole = 1


class Data(Struct, frozen=True, rename="camel"):
    """Pull requests or issues by their aliases, each still to be read."""

    rate_limit: Cost | None = None
    repository: dict[str, Raw] | None = None


class Result(Struct, frozen=True):
    """The answer to a query for them."""

    data: Data | None = None
    errors: list[Fault] = []
