"""Rest of a paused session: the steps that its pass leaves for later."""

from __future__ import annotations

from sm.issues.act import attempts
from sm.issues.act.pending import is_commanded
from sm.sessions import pause
from sm.sessions import plan as plans
from sm.sessions.history import KILLED, StepVerb
from sm.sessions.plan import Plan
from sm.sessions.session import IssueSession

TO_AGENT = frozenset({StepVerb.INJECT, StepVerb.KILL, StepVerb.RECOVER})
"""Steps that an agent feels: they wait during a pause. Steps elsewhere are done."""


def rests(session: IssueSession) -> bool:
    """Whether the session is paused, and no step is under way that has to be finished."""
    if not pause.is_paused(session.dir):
        return False
    plan = plans.read_pending(session.dir)
    if plan is None:
        return not (plans.has_receipt(session.dir, KILLED) or attempts.is_overtaken(session))
    step = plans.find_next_step(plan, plans.read_receipts(session.dir))
    return step < len(plan.steps) and has_to_wait(session, plan, step)


def has_to_wait(session: IssueSession, plan: Plan, number: int) -> bool:
    """Whether that step has to wait for the end of a pause; a person's own command does not."""
    if plan.steps[number].verb not in TO_AGENT or not pause.is_paused(session.dir):
        return False
    return not is_commanded(session, plan)
