"""Reasons why GitLab holds a merge request, in words. Pure.

GitLab names the first thing that is in the way, and merges by itself what is in a merge train or is
set to auto-merge.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from sm.adapters.forge.model import Hold, PullRequest, PullState
from sm.base.text import append_detail, one_line
from sm.plugins.forges.gitlab.shapes import MergeRequest, Note

UNSURE = frozenset(
    {"checking", "unchecked", "preparing", "approvals_syncing", "cannot_be_merged_recheck"}
)
"""GitLab is still finding out."""
FREE = frozenset({"mergeable", "can_be_merged", "not_open"})
"""Words for "nothing is in the way" and "open no more"; the second is an older server's."""
CONFLICTS = frozenset({"conflict", "broken_status", "cannot_be_merged"})
BEHIND = "need_rebase"
"""The project merges only what has the last commit of the target: semi-linear, or fast-forward."""
RUNNING = "ci_still_running"
EMPTY = "commits_status"
REASONS = {
    RUNNING: "its pipeline is still running",
    "ci_must_pass": "its pipeline has to pass",
    "not_approved": "the project asks for an approval that is missing",
    "code_owners_approval": "an approval by an owner of the code is missing",
    "requested_changes": "a reviewer wants changes",
    "discussions_not_resolved": "a thread is not resolved",
    "draft_status": "it is a draft",
    "merge_request_blocked": "another merge request blocks it",
    "blocked_status": "another merge request blocks it",
    "status_checks_must_pass": "a status check has to pass",
    "external_status_checks": "a status check has to pass",
    "security_policy_violations": "a security policy forbids it",
    "policies_denied": "a security policy forbids it",
    "merge_time": "it may not be merged before a certain time",
    "locked_paths": "a file is locked",
    "locked_lfs_files": "a file is locked",
    "jira_association_missing": "it names no Jira issue",
    "title_regex": "its title has not the form that the project asks for",
    EMPTY: "its branch is gone or empty",
}
"""GitLab's words for what a person has to do before it merges, and ours."""
REMOVED = "removed this merge request from the merge train"
"""Beginning of GitLab's own note that it has taken one out of a merge train."""


def hold_back(pull: PullRequest, shape: MergeRequest) -> PullRequest:
    """`pull` with what GitLab says of its merge."""
    if pull.state is not PullState.OPEN:
        return pull
    if shape.merge_when_pipeline_succeeds:
        held = "GitLab merges it by itself: it is in the merge train, or set to auto-merge"
        return structs.replace(pull, hold=Hold.QUEUED, held=held)
    if shape.standing == BEHIND:
        return structs.replace(pull, hold=Hold.BEHIND, held=f"the branch is behind '{pull.base}'")
    if said := REASONS.get(shape.standing):
        return structs.replace(pull, hold=Hold.BLOCKED, held=said)
    if shape.standing and shape.standing not in FREE | UNSURE | CONFLICTS:
        said = f"GitLab says '{one_line(shape.standing, 60)}', which sm does not know"
        return structs.replace(pull, hold=Hold.BLOCKED, held=said)
    return pull


def keep_hold(pull: PullRequest, known: PullRequest) -> PullRequest:
    """`pull` as it was known, where GitLab is still finding out."""
    return structs.replace(pull, conflicts=known.conflicts, hold=known.hold, held=known.held)


def add_removal(pull: PullRequest, notes: Iterable[Note]) -> PullRequest:
    """`pull` with why it was last removed from the merge train, unless it is there again."""
    told = sorted((one for one in notes if one.system), key=lambda one: one.id)
    said = [one.body for one in told if (one.body or "").startswith(REMOVED)]
    if not said or pull.state is not PullState.OPEN or pull.hold is Hold.QUEUED:
        return pull
    reason = one_line(said[-1] or "", 300).removeprefix(REMOVED).removeprefix(" because").strip()
    words = f"it was removed from the merge train: {reason or 'GitLab does not say why'}"
    return structs.replace(pull, held="; ".join(filter(None, [words, pull.held])))


def explain(said: str, now: MergeRequest) -> str:
    """Return what is in the way of a merge, after GitLab's own words."""
    behind = f"it has to be rebased on '{now.target_branch}'" if now.standing == BEHIND else ""
    reason = behind or REASONS.get(now.standing) or now.merge_error or now.standing
    return append_detail(said, reason)
