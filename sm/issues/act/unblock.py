"""Unblocking: lets an issue whose session has ended be worked on again, by a person's act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sm.base.act import Act, ActKind
from sm.base.issue_id import IssueId
from sm.config.schema import ProjectSettings

if TYPE_CHECKING:
    from sm.sessions.project import Project


def offer_unblock(project: ProjectSettings, issue: IssueId) -> Act:
    """Return the act that unblocks the issue; a missing label is no error."""
    labels = project.labels
    return Act(
        ActKind.ALLOW, project.name, issue, label_off=labels.blocked, label_on=labels.backlog
    )


def spell_unblock(project: ProjectSettings, issue: IssueId) -> str:
    """Return the shell command of that act."""
    return offer_unblock(project, issue).command


def unblock(project: Project, issue: IssueId) -> None:
    """Carry that act out."""
    labels, issues = project.settings.labels, project.forge.issues
    issues.remove_label(issue, labels.blocked)
    issues.add_label(issue, labels.backlog)
