"""Restarts an agent because a person asks for it, whatever the limits are."""

from __future__ import annotations

import time

from sm.base.errors import SmError, UsageError
from sm.base.issue_id import IssueId, spell
from sm.issues.act.compose import compose
from sm.issues.act.effects import withdraw
from sm.issues.act.unblock import spell_unblock
from sm.issues.look import issue_text
from sm.issues.look.observe import observe
from sm.issues.rules.decide import BY_HAND, Decision
from sm.issues.rules.facts import Facts
from sm.issues.rules.matrix import BY_NAME
from sm.issues.start import start
from sm.sessions import monitors, registry
from sm.sessions import plan as plans
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import events, lock
from sm.store.paths import name_session
from sm.store.repair import repair


def recover(project: Project, issue: IssueId) -> IssueSession:
    """End all that runs for the issue, and restart it from its worktree and branch.

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
        _take_back(session)
        issue_text.take(session, by_hand=True, anew=True)
        seen = observe(session)
        plans.save(session.dir, compose(session, seen, _by_hand(seen.facts)))
    project.record(events.RecoverAsked(session=session.name))
    monitors.ensure(session)
    registry.poke(session.dir)
    return session


def _refuse_blocked(project: Project, issue: IssueId) -> SmError:
    return SmError(
        f"issue {spell(issue)} is labelled '{project.settings.labels.blocked}', and no agent "
        "works on "
        f"it until that is taken off: {spell_unblock(project.settings, issue)}"
    )


def _take_back(session: IssueSession) -> None:
    """Drop what is under way, and its message that still waits: both are decided again."""
    plan = plans.read_pending(session.dir)
    step = plans.find_next_step(plan, plans.read_receipts(session.dir)) if plan else 0
    if plan and step < len(plan.steps):
        withdraw(session, plan, step)
    plans.drop(session.dir)


def _by_hand(facts: Facts) -> Decision:
    return Decision(BY_NAME["recover"], f"{BY_HAND}{time.time():.3f}", facts.now)
