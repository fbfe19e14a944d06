"""Backlog: issues that may be worked on and picked up, by the last look at the forge."""

from __future__ import annotations

from sm.adapters.forge.model import Issue, IssueState
from sm.base.issue_id import IssueId, rank
from sm.config.schema import ProjectSettings
from sm.issues.look.seen import Snapshot
from sm.sessions.project import Project


def list_ready(project: Project, seen: Snapshot) -> list[Issue]:
    """Return the issues that may be picked up, oldest first."""
    labels, trust = project.settings.labels, seen.trust(project.settings)
    return sorted(
        (
            issue
            for issue in seen.issues
            if is_workable(project.settings, issue)
            and labels.backlog in issue.labels
            and trust.includes(issue.author)
            and not list_blockers(seen, issue)
            and not issue.waits
        ),
        key=lambda issue: rank(issue.number),
    )


def list_blockers(seen: Snapshot, issue: Issue) -> list[IssueId]:
    """Return the open issues that `issue` depends on."""

    def is_closed(number: IssueId) -> bool:
        found = seen.issue(number)
        return found is not None and found.state is IssueState.CLOSED

    return [number for number in issue.dependencies() if not is_closed(number)]


def is_workable(project: ProjectSettings, issue: Issue) -> bool:
    """Whether the issue is open, and not blocked."""
    return issue.state is IssueState.OPEN and project.labels.blocked not in issue.labels
