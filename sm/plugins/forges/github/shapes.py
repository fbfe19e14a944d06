"""Answers that GitHub alone gives over REST: checks, and GitHub Actions."""

from __future__ import annotations

from msgspec import Raw, Struct

from sm.plugins.forges.rest.shapes import Whole


class App(Struct, frozen=True):
    """The program that a check run is of."""

    slug: str | None = ""


class Suite(Struct, frozen=True):
    """The check runs of one push and one program."""

    id: Whole = 0


class Output(Struct, frozen=True):
    """The output of a check run."""

    title: str | None = None
    summary: str | None = None
    text: str | None = None


class CheckRunShape(Struct, frozen=True):
    """One check run."""

    id: Whole
    name: str
    status: str
    conclusion: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    html_url: str | None = None
    check_suite: Suite | None = None
    app: App | None = None
    output: Output | None = None


class CheckRuns(Struct, frozen=True):
    """A page of check runs."""

    check_runs: list[Raw] = []


class Annotation(Struct, frozen=True):
    """A note of a check run on a line, or on itself."""

    annotation_level: str | None = None
    message: str | None = None


class StatusPage(Struct, frozen=True):
    """A page of the last statuses of each context."""

    statuses: list[Raw] | None = None


class Remarked(Struct, frozen=True):
    """The last edit of a remark, over REST. The remark belongs to no review if that was deleted."""

    pull_request_review_id: Whole | None = None
    updated_at: str = ""


class OwnRepository(Struct, frozen=True):
    """A repository, by what stays when it is renamed."""

    id: Whole = 0


class ActionsRun(Struct, frozen=True):
    """A run of a workflow, over REST. One for a pull request of a fork has its head there."""

    id: Whole
    status: str | None = None
    conclusion: str | None = None
    name: str | None = None
    event: str | None = None
    html_url: str | None = None
    updated_at: str | None = None
    workflow_id: Whole = 0
    check_suite_id: Whole = 0
    run_number: Whole = 0
    repository: OwnRepository | None = None
    head_repository: OwnRepository | None = None

    @property
    def key(self) -> str:
        """A key that two runs of the same workflow share."""
        return f"{self.workflow_id}/{self.event}"

    @property
    def is_ours(self) -> bool:
        """Whether what it has run is of the repository itself.

        A fork may have the same commit: its pull request then writes checks to it as ours does.
        """
        head, ours = self.head_repository, self.repository
        if head is None or ours is None:
            return not (self.event or "").startswith("pull_request")
        return head.id == ours.id


class ActionsRuns(Struct, frozen=True):
    """A page of them."""

    workflow_runs: list[Raw] = []


class ActionsJob(Struct, frozen=True):
    """A job of a run: the check run of GitHub Actions with the same id."""

    id: Whole
    name: str = ""
    status: str | None = None
    conclusion: str | None = None
    html_url: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class ActionsJobs(Struct, frozen=True):
    """A page of them."""

    jobs: list[Raw] = []
