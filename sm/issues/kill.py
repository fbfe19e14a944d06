"""Ends a session because a person asks for it: the same as the blocked label."""

from __future__ import annotations

import time

from sm.issues.act.reactor import react
from sm.issues.act.refusals import REFUSALS
from sm.sessions import plan as plans
from sm.sessions import registry
from sm.sessions.history import KILLED, Receipt
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events


def kill(project: Project, issue: int) -> list[str]:
    """Set the label, and let the matrix do the rest now; return what happened.

    Raises:
        UsageError: the issue has no session.

    """
    session = registry.load_for(project, issue)
    labelled = _label(session)
    # Whoever asks for it knows what is on the screen: the end waits for nobody there.
    plans.add_receipt(session.dir, Receipt(time.time(), KILLED, KILLED))
    project.record(events.Kill(session=session.name))
    react(project, session.name)
    if session.dir.identity.exists():
        return [f"{session.name} could not be ended yet: see sm status"]
    ended = [f"ended {session.name}; {labelled}"]
    if session.worktree.exists():
        ended.append(f"its worktree has work that is nowhere else: {session.worktree}")
    return ended


def _label(session: IssueSession) -> str:
    """Label the issue, which may have been deleted; say how that went."""
    blocked = session.project.settings.labels.blocked
    try:
        session.project.forge.issues.add_label(session.issue, blocked)
    except REFUSALS as error:
        return f"issue #{session.issue} is not labelled {blocked}: {error.message}"
    return f"issue #{session.issue} is labelled {blocked}"
