"""Answers of GitLab's REST interface (version 4), as far as they are read.

Its numbers are called `iid`: issues have their own, and merge requests have theirs.
"""

from __future__ import annotations

from msgspec import Struct

from sm.plugins.forges.rest.shapes import Number, Sha, Whole


class AccountJson(Struct, frozen=True):
    """An account. What a deleted one has written belongs to `ghost`."""

    username: str = ""


class IssueJson(Struct, frozen=True):
    """An issue."""

    iid: Number
    title: str
    state: str
    created_at: str
    updated_at: str
    author: AccountJson | None = None
    assignees: list[AccountJson] | None = None
    labels: list[str] = []
    description: str | None = None
    user_notes_count: Whole = 0


class Position(Struct, frozen=True):
    """The place of a remark in a diff: `new_line` is null for a line that was removed."""

    new_path: str | None = None
    old_path: str | None = None
    new_line: Whole | None = None
    old_line: Whole | None = None
    head_sha: str | None = None


class Note(Struct, frozen=True):
    """A comment, or with `system` what GitLab itself tells of its author's deeds."""

    id: Whole
    created_at: str
    body: str | None = None
    author: AccountJson | None = None
    system: bool = False
    resolvable: bool = False
    resolved: bool = False
    position: Position | None = None


class ThreadJson(Struct, frozen=True):
    """A comment and what was said to it."""

    id: str
    individual_note: bool = False
    notes: list[Note] = []


class PipelineJson(Struct, frozen=True):
    """A run of CI. `sha` is the head, or of a merged result the merge that was tried with it."""

    id: Whole
    sha: Sha
    status: str
    project_id: int = 0
    ref: str | None = None
    source: str | None = None
    web_url: str | None = None
    updated_at: str | None = None
    yaml_errors: str | None = None


class JobJson(Struct, frozen=True):
    """A job of a pipeline, or with other words a status that another program has set."""

    id: Whole
    name: str = ""
    status: str = ""
    allow_failure: bool = False
    failure_reason: str | None = None
    web_url: str | None = None
    target_url: str | None = None
    description: str | None = None
    finished_at: str | None = None


class BridgeJson(JobJson, frozen=True):
    """A job that has begun another pipeline, a child of its own or one of another project."""

    downstream_pipeline: PipelineJson | None = None


class DiffRefs(Struct, frozen=True):
    """The commits between which a remark on a line is placed."""

    base_sha: str | None = None
    head_sha: str | None = None
    start_sha: str | None = None


class MergeRequest(Struct, frozen=True):
    """A merge request. A list has no `head_pipeline` and no `diff_refs`.

    With `merge_when_pipeline_succeeds` GitLab merges it by itself, by a merge train as well.
    """

    iid: Number
    title: str
    state: str
    created_at: str
    updated_at: str
    source_branch: str
    target_branch: str
    target_project_id: Whole
    source_project_id: Whole | None = None
    sha: Sha | None = None
    author: AccountJson | None = None
    description: str | None = None
    merge_commit_sha: str | None = None
    squash_commit_sha: str | None = None
    merged_at: str | None = None
    closed_at: str | None = None
    has_conflicts: bool = False
    merge_status: str = ""
    detailed_merge_status: str = ""
    merge_error: str | None = None
    merge_when_pipeline_succeeds: bool = False
    head_pipeline: PipelineJson | None = None
    diff_refs: DiffRefs | None = None

    @property
    def standing(self) -> str:
        """Whether it can be merged, in GitLab's word. Servers before 15.6 have fewer words."""
        return self.detailed_merge_status or self.merge_status

    @property
    def merged_as(self) -> str:
        """The commit that came of it; of a fast-forward the head."""
        return self.merge_commit_sha or self.squash_commit_sha or self.sha or ""


class Approval(Struct, frozen=True):
    """One person's approval; older servers do not say since when."""

    user: AccountJson
    approved_at: str | None = None


class Approvals(Struct, frozen=True):
    """The approvals that stand."""

    approved_by: list[Approval] = []


class Reviewer(Struct, frozen=True):
    """One who was asked for a review, and how far it is."""

    user: AccountJson
    state: str = ""


class Version(Struct, frozen=True):
    """The state of a merge request after a push."""

    head_commit_sha: Sha
    created_at: str


class Member(Struct, frozen=True):
    """One who has a role in the project, or in a group above it."""

    username: str = ""
    access_level: Whole = 0
    state: str = "active"


class Access(Struct, frozen=True):
    """A role."""

    access_level: Whole = 0


class Permissions(Struct, frozen=True):
    """The roles of the token's account."""

    project_access: Access | None = None
    group_access: Access | None = None


class ProjectJson(Struct, frozen=True):
    """A repository with all that belongs to it. Its id stays when it is renamed or moved."""

    id: Whole
    path_with_namespace: str
    permissions: Permissions | None = None
    merge_trains_enabled: bool = False
    archived: bool = False
    squash_option: str | None = None


class CommitJson(Struct, frozen=True):
    """A commit."""

    id: Sha
    parent_ids: list[str] = []


class BranchJson(Struct, frozen=True):
    """A branch and its commit."""

    commit: CommitJson


class Diff(Struct, frozen=True):
    """The change of one file."""

    new_path: str
    old_path: str = ""
    diff: str = ""
    new_file: bool = False
    deleted_file: bool = False


class ComparisonJson(Struct, frozen=True):
    """A comparison of two commits: what one has and the other lacks."""

    commits: list[CommitJson] = []
    diffs: list[Diff] = []


class TokenJson(Struct, frozen=True):
    """Facts about the token itself."""

    scopes: list[str] = []
