"""Answers of GitHub's REST interface, as far as they are read. Forgejo and Gitea answer alike."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from sm.adapters.forge.model import Sign
from sm.base.foreign import NUMBER_LIMIT

Number = Annotated[int, Meta(ge=1, le=NUMBER_LIMIT)]
Whole = Annotated[int, Meta(ge=0, le=2**62)]
"""A number that can be kept in a file: an id, a count."""
Sha = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{40}|[0-9a-f]{64})?\Z")]
"""A commit, which gets into addresses; '' for none."""

MERGE, SQUASH, REBASE = "merge", "squash", "rebase"
REBASE_MERGE, FAST_FORWARD = "rebase-merge", "fast-forward-only"
METHODS = (MERGE, SQUASH, REBASE, REBASE_MERGE, FAST_FORWARD)
"""Merge methods of forges; the last two are of Forgejo and Gitea alone (`models/repo/git.go`)."""


class User(Struct, frozen=True):
    """An account. One that was deleted is null where it is named."""

    login: str = ""


class Label(Struct, frozen=True):
    """A label. Forgejo and Gitea give it to an issue by its id."""

    name: str | None = ""
    id: Whole = 0


class PullLink(Struct, frozen=True):
    """The mark of a pull request in a list of issues."""

    merged_at: str | None = None


class BlockersShape(Struct, frozen=True):
    """The number of open issues that block an issue of GitHub."""

    blocked_by: Whole = 0


class IssueShape(Struct, frozen=True):
    """An issue, or a pull request as the list of issues has it."""

    number: Number
    title: str
    state: str
    created_at: str
    updated_at: str
    user: User | None = None
    labels: list[Label | str] = []
    body: str | None = None
    comments: Whole = 0
    assignees: list[User] | None = None
    pull_request: PullLink | None = None
    repository_url: str | None = None
    issue_dependencies_summary: BlockersShape | None = None


class ChangedEntry(Struct, frozen=True):
    """The last change of an entry of a list."""

    updated_at: str


class CommentShape(Struct, frozen=True):
    """A comment on an issue or a pull request."""

    id: Whole
    created_at: str
    user: User | None = None
    body: str | None = None


class Repository(Struct, frozen=True):
    """A repository. Its id stays when it is renamed or moved.

    How it may be merged into is told to those who may push. GitHub has a field of its own for
    merges and for rebases, and so have Forgejo and Gitea (`modules/structs/repo.go`), which alone
    have the last two.
    """

    id: Whole
    full_name: str
    permissions: dict[str, bool] | None = None
    archived: bool = False
    allow_merge_commit: bool | None = None
    allow_merge_commits: bool | None = None
    allow_squash_merge: bool | None = None
    allow_rebase_merge: bool | None = None
    allow_rebase: bool | None = None
    allow_rebase_explicit: bool | None = None
    allow_fast_forward_only_merge: bool | None = None

    @property
    def methods(self) -> frozenset[str]:
        """Methods by which it may be merged into; what is not told is taken for allowed.

        But for the last two, if any of it is told: then the server does not have them.
        """
        told = {
            MERGE: (self.allow_merge_commit, self.allow_merge_commits),
            SQUASH: (self.allow_squash_merge,),
            REBASE: (self.allow_rebase_merge, self.allow_rebase),
            REBASE_MERGE: (self.allow_rebase_explicit,),
            FAST_FORWARD: (self.allow_fast_forward_only_merge,),
        }
        is_told = any(set(flags) - {None} for flags in told.values())
        unknown = {one for one in (REBASE_MERGE, FAST_FORWARD) if is_told and told[one] == (None,)}
        return frozenset(one for one, flags in told.items() if False not in flags) - unknown


class End(Struct, frozen=True):
    """One end of a pull request. A fork that was deleted is null."""

    ref: str
    sha: Sha
    repo: Repository | None = None
    user: User | None = None
    label: str | None = None


class PullShape(Struct, frozen=True):
    """A pull request. `mergeable` is null while the forge has not found out."""

    number: Number
    title: str
    state: str
    created_at: str
    head: End
    base: End
    user: User | None = None
    body: str | None = None
    closed_at: str | None = None
    merged_at: str | None = None
    merge_commit_sha: str | None = None
    mergeable: bool | None = None
    mergeable_state: str = ""
    draft: bool = False
    merge_base: Sha = ""
    updated_at: str = ""
    sign: Sign = Sign.SHARED


class ReviewShape(Struct, frozen=True):
    """A review. A pending one has no time. Forgejo and Gitea count only `official` approvals."""

    id: Whole
    state: str
    user: User | None = None
    body: str | None = None
    submitted_at: str | None = None
    commit_id: str | None = None
    dismissed: bool = False
    official: bool = True


class InlineShape(Struct, frozen=True):
    """A remark on a line; `line` and `position` are null once the code it was about is gone.

    One on a whole file has neither: its `subject_type` is "file".
    `resolver` has ended its thread, on Forgejo and Gitea. `user` is null if that account is gone.
    """

    path: str
    body: str
    id: Whole = 0
    diff_hunk: str | None = None
    resolver: User | None = None
    user: User | None = None
    pull_request_review_id: Whole | None = None
    line: Whole | None = None
    original_line: Whole | None = None
    position: Whole | None = None
    original_position: Whole | None = None
    subject_type: str | None = None


class TimelineShape(Struct, frozen=True):
    """An event of a pull request of Forgejo or Gitea; `review_id` is 0 if it is no review."""

    type: str | None = ""
    body: str | None = None
    review_id: Whole = 0


class StatusShape(Struct, frozen=True):
    """One commit status: `state` on GitHub, `status` on Forgejo and Gitea."""

    context: str
    state: str = ""
    status: str = ""
    target_url: str | None = None
    description: str | None = None
    updated_at: str | None = None
    id: Whole = 0


class StatusList(Struct, frozen=True):
    """The last status of each context."""

    statuses: list[StatusShape] | None = None
    total_count: Whole | None = None


class Run(Struct, frozen=True):
    """A run of a workflow."""

    id: Whole
    status: str | None = None
    conclusion: str | None = None


class StepShape(Struct, frozen=True):
    """A step of a job."""

    name: str = ""
    conclusion: str | None = None


class JobShape(Struct, frozen=True):
    """A job of a run. One that no runner has taken up has no step."""

    id: Whole
    name: str = ""
    status: str = ""
    conclusion: str | None = None
    steps: list[StepShape] | None = None


class Jobs(Struct, frozen=True):
    """The jobs of a run, as Gitea has them; Forgejo has only the list."""

    jobs: list[JobShape] = []


class File(Struct, frozen=True):
    """A file that a pull request changes."""

    filename: str
    additions: Whole = 0
    deletions: Whole = 0


class Comparison(Struct, frozen=True):
    """A comparison of two commits: what one has and the other lacks."""

    files: list[File] | None = None
    total_commits: Whole = 0


class RequiredCheck(Struct, frozen=True):
    """A check without which nothing is merged."""

    context: str


class RequiredChecks(Struct, frozen=True):
    """The required checks of a protected branch: by their names, and newer ones with their app."""

    contexts: list[str] = []
    checks: list[RequiredCheck] = []


class Protection(Struct, frozen=True):
    """The protection of a branch of GitHub, as far as all may know."""

    required_status_checks: RequiredChecks | None = None


class Branch(Struct, frozen=True):
    """A branch and its commit. The rules of GitHub are in `protection`."""

    name: str
    commit: Commit
    protection: Protection | None = None
    enable_status_check: bool = False
    status_check_contexts: list[str] | None = None
    required_approvals: Whole = 0
    user_can_merge: bool = True


class RuleParameters(Struct, frozen=True):
    """Parameters of a rule of a ruleset; each kind of rule has its own."""

    required_status_checks: list[RequiredCheck] = []
    required_approving_review_count: Whole = 0
    require_code_owner_review: bool = False
    required_review_thread_resolution: bool = False
    require_last_push_approval: bool = False
    allowed_merge_methods: list[str] | None = None


class Rule(Struct, frozen=True):
    """A rule of a ruleset that holds for a branch."""

    type: str
    parameters: RuleParameters | None = None


class Commit(Struct, frozen=True):
    """A commit."""

    sha: Sha = ""
    id: Sha = ""


class Merged(Struct, frozen=True):
    """The outcome of a merge."""

    sha: str | None = None


class Permission(Struct, frozen=True):
    """The right of an account to the repository."""

    permission: str = ""
