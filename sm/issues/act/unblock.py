"""How a person has an issue worked on again whose session has ended."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sm.config.schema import ProjectSettings

if TYPE_CHECKING:
    from sm.sessions.project import Project


def spell_unblock(project: ProjectSettings, issue: int) -> str:
    """Return the command that does that; a label that is not there is no error."""
    labels = project.labels
    off, on = shlex.quote(labels.blocked), shlex.quote(labels.backlog)
    return f"sm issue label {project.name}#{issue} --remove {off} --add {on}"


def unblock(project: Project, issue: int) -> None:
    """Do what that command does."""
    labels, issues = project.settings.labels, project.forge.issues
    issues.remove_label(issue, labels.blocked)
    issues.add_label(issue, labels.backlog)
