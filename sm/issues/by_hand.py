"""Sessions that a person starts, restarts, ends or gives back, by a command."""

from __future__ import annotations

import time

from sm.adapters.forge.model import IssueState
from sm.base.errors import SmError, TemporaryError, UsageError
from sm.base.issue_id import IssueId, spell
from sm.issues.act.compose import compose
from sm.issues.act.effects import withdraw
from sm.issues.act.problem import REFUSALS
from sm.issues.act.reactor import react
from sm.issues.act.unblock import spell_unblock
from sm.issues.look import issue_text
from sm.issues.look.issue_text import AnotherIssueError, refuse_another
from sm.issues.look.observe import observe
from sm.issues.rules.decide import BY_HAND, Decision
from sm.issues.rules.matrix import BY_NAME
from sm.issues.start import TakenError, start
from sm.issues.work import claim
from sm.sessions import monitors, registry
from sm.sessions import plan as plans
from sm.sessions.history import GIVEN_BACK, KILLED, Receipt
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events, lock
from sm.store.paths import name_session
from sm.store.repair import repair


def start_by_hand(project: Project, number: IssueId) -> IssueSession:
    """Start the session of an open issue, in the backlog or not.

    A running session stays as it is.

    Raises:
        NotFoundError: there is no such issue.
        UsageError: the issue is closed, or blocked.
        TakenError: another installation works on it; the message names it.

    """
    issue = project.forge.issues.read(number)
    blocked = project.settings.labels.blocked
    if issue.state is not IssueState.OPEN:
        raise UsageError(f"issue {spell(number)} is closed: nothing to start")
    if blocked in issue.labels:
        raise UsageError(
            f"issue {spell(number)} is labelled '{blocked}': to have it worked on, "
            f"{spell_unblock(project.settings, number)}"
        )
    try:
        return start(project, issue, by_hand=True)
    except TakenError as error:
        raise TakenError(
            f"{error.message} ({_owner(project, number)}): "
            f"take it over with sm recover {project.name} {number}"
        ) from error


def _owner(project: Project, number: IssueId) -> str:
    try:
        return claim.describe_owner(project.git, project.settings, number) or "just given up"
    except TemporaryError:
        return "its owner cannot be asked for now"


def recover(project: Project, issue: IssueId) -> IssueSession:
    """End all that runs for the issue, and restart it from its worktree and branch, at any limit.

    An issue that is unknown here is taken over, even from another installation.

    Raises:
        UsageError: there is no such issue, or the issue is closed.
        SmError: the issue is blocked, so the session would end at once.

    """
    name = name_session(project.name, issue)
    if not project.root.session(name).identity.exists():
        found = project.forge.issues.read(issue)
        if found.state != "open":
            raise UsageError(f"issue {spell(issue)} is closed: nothing to recover")
        if project.settings.labels.blocked in found.labels:
            raise _refuse_blocked(project, issue)
        return start(project, found, seize=True)
    repair(project.root, project.root.session(name))
    session = registry.load_for(project, issue)
    with lock.hold(session.dir.lock, timeout_s=120):
        if observe(session).facts.blocked:
            raise _refuse_blocked(project, issue)
        # What is under way is dropped, with its message that still waits: both are decided again.
        plan = plans.read_pending(session.dir)
        step = plans.find_next_step(plan, plans.read_receipts(session.dir)) if plan else 0
        if plan and step < len(plan.steps):
            withdraw(session, plan, step)
        plans.drop(session.dir)
        issue_text.take(session, by_hand=True, anew=True)
        seen = observe(session)
        decision = Decision(BY_NAME["recover"], f"{BY_HAND}{time.time():.3f}", seen.facts.now)
        plans.save(session.dir, compose(session, seen, decision))
    project.record(events.RecoverAsked(session=session.name))
    monitors.ensure(session)
    registry.poke(session.dir)
    return session


def _refuse_blocked(project: Project, issue: IssueId) -> SmError:
    return SmError(
        f"issue {spell(issue)} is labelled '{project.settings.labels.blocked}', and no agent works "
        f"on it until that is taken off: {spell_unblock(project.settings, issue)}"
    )


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
