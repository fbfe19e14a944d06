"""What GitHub's GraphQL interface answers to our queries."""

from __future__ import annotations

from msgspec import Struct, field

from sm.adapters.forge.rest.shapes import Number


class Actor(Struct, frozen=True, rename="camel"):
    """An account. GraphQL leaves out the "[bot]" that REST puts behind the name of an app."""

    login: str = ""
    kind: str = field(default="User", name="__typename")


class Oid(Struct, frozen=True):
    """A commit."""

    oid: str = ""


class ReviewNode(Struct, frozen=True, rename="camel"):
    """A review."""

    state: str
    database_id: int | None = None
    author: Actor | None = None
    submitted_at: str | None = None
    commit: Oid | None = None


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


class Contexts(Struct, frozen=True, rename="camel"):
    """All that CI says of a commit, 100 at most."""

    nodes: list[Context] = []
    page_info: PageInfo = PageInfo()


class Rollup(Struct, frozen=True):
    """The same in a word."""

    state: str = ""
    contexts: Contexts | None = None


class CommitNode(Struct, frozen=True, rename="camel"):
    """A commit and what CI says of it."""

    oid: str = ""
    status_check_rollup: Rollup | None = None


class CommitLink(Struct, frozen=True):
    """A commit of a pull request."""

    commit: CommitNode


class Commits(Struct, frozen=True):
    """The last commit of a pull request."""

    nodes: list[CommitLink] = []


class PullNode(Struct, frozen=True, rename="camel"):
    """A pull request, with as much as was asked for."""

    number: Number
    state: str
    head_ref_oid: str = ""
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

    @property
    def rollup(self) -> Rollup | None:
        """What CI says of the last commit."""
        links = self.commits.nodes if self.commits else []
        return links[-1].commit.status_check_rollup if links else None


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
    """Something that somebody has done to an issue."""

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

    cost: int = 1


class Fault(Struct, frozen=True):
    """Something that a query has not found, or more."""

    message: str = ""
    type: str = ""


class PullData(Struct, frozen=True, rename="camel"):
    """Pull requests by their aliases."""

    rate_limit: Cost | None = None
    repository: dict[str, PullNode | None] | None = None


class PullResult(Struct, frozen=True):
    """The answer to a query for pull requests."""

    data: PullData | None = None
    errors: list[Fault] = []


class IssueData(Struct, frozen=True, rename="camel"):
    """Issues by their aliases."""

    rate_limit: Cost | None = None
    repository: dict[str, IssueNode | None] | None = None


class IssueResult(Struct, frozen=True):
    """The answer to a query for issues."""

    data: IssueData | None = None
    errors: list[Fault] = []
