"""Ends a session because a person asks for it: as the blocked label does, or without it."""

from __future__ import annotations

import time

from sm.base.issue_id import IssueId, spell
from sm.issues.act.reactor import react
from sm.issues.act.refusals import REFUSALS
from sm.issues.act.unblock import spell_unblock
from sm.issues.look.issue_text import AnotherIssueError, refuse_another
from sm.issues.look.observe import observe
from sm.sessions import plan as plans
from sm.sessions import registry
from sm.sessions.history import GIVEN_BACK, KILLED, Receipt
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events


def kill(project: Project, issue: IssueId) -> list[str]:
    """Set the label, and let the matrix do the rest now; return what happened.

    An issue that is merged or closed gets no label: nobody would work on it again.

    Raises:
        UsageError: the issue has no session.

    """
    session = registry.load_for(project, issue)
    if settled := _find_settled(session):
        return _end(session, settled)
    try:
        refuse_another(session)
    except AnotherIssueError:
        return _end(session, f"issue {spell(issue)} is another one by now, and is left as it is")
    said = _end(session, label_blocked(project, issue))
    return [*said, f"to have the issue worked on again: {spell_unblock(project.settings, issue)}"]


def _find_settled(session: IssueSession) -> str:
    """Look at the forge now; return what became of an issue that is over, '' for any other."""
    seen = observe(session, newer_than=time.time())
    if seen.pull and seen.facts.merged:
        return f"pull request {seen.pull.name} is merged"
    return "" if seen.facts.issue_open else f"issue {spell(session.issue)} is closed"


def give_back(project: Project, issue: IssueId) -> list[str]:
    """End the session and give the issue back to the backlog; return what happened.

    The caller has paused the session, or the next tick would take the issue up again.

    Raises:
        UsageError: the issue has no session.

    """
    session = registry.load_for(project, issue)
    plans.add_receipt(session.dir, Receipt(time.time(), GIVEN_BACK, GIVEN_BACK))
    return _end(session, "its issue is back in the backlog")


def _end(session: IssueSession, said: str) -> list[str]:
    """Let the matrix do what is left; `said` is what became of the issue."""
    project = session.project
    # The person who asks knows what is on the screen: the end waits for nobody there.
    plans.add_receipt(session.dir, Receipt(time.time(), KILLED, KILLED))
    project.record(events.Kill(session=session.name))
    react(project, session.name)
    if session.dir.identity.exists():
        return [f"{session.name} could not be ended yet: see sm status"]
    ended = [f"ended {session.name}; {said}"]
    if session.worktree.exists():
        ended.append(f"its worktree is kept: {session.worktree} ('sm worktree list' says why)")
    return ended


def label_blocked(project: Project, issue: IssueId) -> str:
    """Label the issue, which may have been deleted; say how that went."""
    blocked = project.settings.labels.blocked
    try:
        project.forge.issues.add_label(issue, blocked)
    except REFUSALS as error:
        return f"issue {spell(issue)} is not labelled {blocked}: {error.message}"
    return f"issue {spell(issue)} is labelled {blocked}"
