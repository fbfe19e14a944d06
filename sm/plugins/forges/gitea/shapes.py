"""Answers that only Forgejo and Gitea give, as far as they are read."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from msgspec import Raw, Struct

from sm.plugins.forges.rest.shapes import File, Number, Run, Whole

PULL = re.compile(r"@refs/pull/([0-9]{1,9})/head\Z|\A#([0-9]{1,9})\Z")
"""The pull request that has begun a run: the end of Gitea's `path`, or Forgejo's `prettyref`, which
is the `head_branch` of a task, and of a run of Forgejo 12."""


class GiteaStatusList(Struct, frozen=True):
    """A page of the last status of each context. How many there are in all is in a header."""

    statuses: list[Raw] | None = None


class GiteaPlace(Struct, frozen=True):
    """The repository that an issue is in."""

    full_name: str = ""


class Needed(Struct, frozen=True):
    """An issue or a pull request that another one depends on."""

    number: Number
    state: str
    repository: GiteaPlace | None = None

    def name(self, repository: str) -> str:
        """Name it as in `repository`."""
        there = self.repository.full_name if self.repository else ""
        return f"#{self.number}" if there in ("", repository) else f"{there}#{self.number}"


class ActionRun(Run, frozen=True):
    """A run of a workflow; whose pull request has begun it, the two forges say in other fields.

    Of Forgejo 12 `url` is its page, of others only if they have no `html_url`.
    """

    html_url: str | None = None
    url: str | None = None
    path: str | None = None
    prettyref: str | None = None
    head_branch: str | None = None
    is_fork_pull_request: bool = False

    @property
    def pull(self) -> int:
        """The number of the pull request that has begun it, 0 for none."""
        told = (self.path, self.prettyref, self.head_branch)
        found = next(filter(None, (PULL.search(one or "") for one in told)), None)
        return int(found[1] or found[2]) if found else 0

    @property
    def place(self) -> str:
        """The path of its page, which statuses link to."""
        return urlsplit(self.html_url or self.url or "").path.rstrip("/")


class ActionRuns(Struct, frozen=True):
    """A page of the runs of workflows on a commit."""

    workflow_runs: list[ActionRun] | None = None
    total_count: Whole | None = None


class ActionTask(Struct, frozen=True):
    """A job that has begun, with the address of its run; all who may read are told of it."""

    head_sha: str = ""
    head_branch: str = ""
    url: str = ""

    @property
    def run(self) -> ActionRun:
        """Its run, which has no id here."""
        return ActionRun(id=0, url=self.url, head_branch=self.head_branch)


class ActionTasks(Struct, frozen=True):
    """A page of the jobs that have begun in a repository, the last one first."""

    workflow_runs: list[ActionTask] | None = None


class CommitFiles(Struct, frozen=True):
    """A commit with the files that it changes."""

    files: list[File] | None = None


class Compared(Struct, frozen=True):
    """A comparison of two commits. Only Forgejo has the files of all together."""

    files: list[File] | None = None
    commits: list[CommitFiles] | None = None
    total_commits: Whole = 0

    @property
    def all_files(self) -> list[File]:
        """Each file that one of the commits changes, once."""
        listed = [file for commit in self.commits or () for file in commit.files or ()]
        return list({file.filename: file for file in self.files or listed}.values())
