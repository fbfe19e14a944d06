"""Makes the shapes that the forges over REST have in common from GitLab's answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sm.adapters.forge.model import Sign
from sm.plugins.forges.gitlab.hold import CONFLICTS, EMPTY, UNSURE
from sm.plugins.forges.gitlab.shapes import (
    AccountJson,
    Diff,
    IssueJson,
    MergeRequest,
    Note,
    Permissions,
    ProjectJson,
)
from sm.plugins.forges.rest.shapes import (
    CommentShape,
    End,
    File,
    IssueShape,
    PullShape,
    Repository,
    User,
)

DEVELOPER = 30
"""The lowest role that may push."""
NO_SQUASH = "never"
"""Word of a project's `squash_option` if it takes no squash (docs.gitlab.com, "Projects API")."""


def make_user(account: AccountJson | None) -> User | None:
    """An account."""
    return User(account.username) if account else None


def make_repository(shape: ProjectJson) -> Repository:
    """A project, and whether the token may push to it."""
    found = shape.permissions or Permissions()
    roles = [one.access_level for one in (found.project_access, found.group_access) if one]
    permissions = {"push": max(roles) >= DEVELOPER} if roles else None
    return Repository(
        shape.id,
        shape.path_with_namespace,
        permissions,
        archived=shape.archived,
        allow_squash_merge=shape.squash_option != NO_SQUASH,
    )


def make_issue_shape(shape: IssueJson) -> IssueShape:
    """An issue."""
    return IssueShape(
        number=shape.iid,
        title=shape.title,
        state="open" if shape.state == "opened" else "closed",
        created_at=shape.created_at,
        updated_at=shape.updated_at,
        user=make_user(shape.author),
        labels=[*shape.labels],
        body=shape.description,
        comments=shape.user_notes_count,
        assignees=[User(one.username) for one in shape.assignees or ()],
    )


def make_pull_shape(shape: MergeRequest) -> PullShape:
    """A merge request. A locked one is just being merged."""
    target = Repository(shape.target_project_id, "")
    source = shape.source_project_id
    author = make_user(shape.author)
    is_merged = shape.state == "merged"
    return PullShape(
        number=shape.iid,
        title=shape.title,
        state="open" if shape.state in ("opened", "locked") else "closed",
        created_at=shape.created_at,
        updated_at=shape.updated_at,
        head=End(
            shape.source_branch, shape.sha or "", Repository(source, "") if source else None, author
        ),
        base=End(shape.target_branch, "", target),
        user=author,
        body=shape.description,
        closed_at=shape.closed_at,
        merged_at=(shape.merged_at or shape.updated_at) if is_merged else None,
        merge_commit_sha=shape.merged_as if is_merged else None,
        mergeable=_mergeable(shape),
        sign=Sign.OWN,
    )


def _mergeable(shape: MergeRequest) -> bool | None:
    """Whether it does not conflict. What has no branch or no commits only seems to."""
    if shape.standing == EMPTY:
        return True
    if shape.has_conflicts or shape.standing in CONFLICTS:
        return False
    return None if shape.standing in UNSURE else True


def make_comment_shape(shape: Note) -> CommentShape:
    """A comment."""
    return CommentShape(shape.id, shape.created_at, make_user(shape.author), shape.body)


def join_diffs(shapes: Iterable[Diff]) -> str:
    """The changes of files as a patch."""
    return "".join(map(_write_patch, shapes))


def _write_patch(shape: Diff) -> str:
    old, new = shape.old_path or shape.new_path, shape.new_path
    ends = (
        "/dev/null" if shape.new_file else f"a/{old}",
        "/dev/null" if shape.deleted_file else f"b/{new}",
    )
    return f"diff --git a/{old} b/{new}\n--- {ends[0]}\n+++ {ends[1]}\n{shape.diff}"


def make_file(shape: Diff) -> File:
    """A file that is changed, and in how many lines."""
    lines = shape.diff.splitlines()
    counts = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return File(shape.new_path, *counts)
