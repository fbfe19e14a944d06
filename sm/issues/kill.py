"""Ends a session because a person asks for it: the same as the blocked label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sm.issues.reactor import react
from sm.sessions import registry
from sm.sessions.project import Project
from sm.store import events


def kill(project: Project, issue: int) -> Iterator[str]:
    """Set the label, and let the matrix do the rest now; yield what happened.

    Raises:
        UsageError: the issue has no session.

    """
    session = registry.load_for(project, issue)
    project.forge.add_label(issue, project.settings.labels.blocked)
    project.record(events.Kill(session=session.name))
    react(project, session.name)
    if session.dir.identity.exists():
        yield f"{session.name} could not be ended yet: see sm status"
        return
    yield f"ended {session.name}; issue #{issue} is labelled {project.settings.labels.blocked}"
    if Path(session.worktree).exists():
        yield f"its worktree has work that is nowhere else: {session.worktree}"
