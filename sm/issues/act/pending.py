"""Plan under way: goes on with it, has it wait for the end of a pause, or drops it as pointless."""

from __future__ import annotations

import time

from sm.base.refusal import Refusal
from sm.issues.act import attempts, retry
from sm.issues.act.effects import withdraw
from sm.issues.act.problem import read_problem
from sm.issues.look.escalation import STUCK
from sm.issues.look.observe import observe
from sm.issues.rules.allowance import DEFIED_S
from sm.issues.rules.decide import BY_HAND, decide
from sm.issues.rules.facts import Facts
from sm.issues.rules.matrix import BY_NAME, INTERRUPTING, OVERTAKING
from sm.issues.rules.rows import GIVING_WORK
from sm.issues.work import slots
from sm.messages.presence import find_obstacle
from sm.sessions import pause, spending_hold
from sm.sessions import plan as plans
from sm.sessions.history import DEFIED, KILLED, Receipt, StepVerb
from sm.sessions.plan import Plan
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import IssueSession
from sm.store import events

FINAL = frozenset({StepVerb.OPEN_PULL, StepVerb.MERGE})
"""Steps that cannot be taken back: before another try it is checked if they are overtaken."""

PATIENT = (Refusal.BUSY, Refusal.HOLD, Refusal.PAUSED, Refusal.BRAKED)
"""Refusals that no person is told of: the first ends by itself, a rotation tells of the second."""

TO_AGENT = frozenset({StepVerb.INJECT, StepVerb.KILL, StepVerb.RECOVER})
"""Steps that an agent feels: they wait during a pause. Steps elsewhere are done."""

STUCK_S = 600.0
"""Seconds that a message may wait to be typed before a person is told; a busy agent takes its time,
and so does one whose context is being replaced."""


def find(session: IssueSession) -> Plan | None:
    """Find the plan under way, unless it, or another try of its next step, is pointless."""
    plan = plans.read_pending(session.dir)
    step = plans.find_next_step(plan, plans.read_receipts(session.dir)) if plan else 0
    if plan is None or step >= len(plan.steps):
        return plan
    verb = plan.steps[step].verb
    if (
        verb in GIVING_WORK
        and not plan.key.startswith(BY_HAND)
        and spending_hold.is_set(session.dir)
    ):
        return _take_back(session, plan, step, "it may spend nothing now")
    # What was decided before a pause may have lost its sense since.
    waited = plan.created_at < pause.read_resumed_at(session.dir)
    put_off = waited or session.dir.problem.exists()
    waits = put_off and verb is StepVerb.INJECT
    # A merge that was killed may be done: only one that was put off is judged again.
    merges = put_off and verb is StepVerb.MERGE
    # A session that was to end may have gone on meanwhile, if no part of it has ended yet.
    ends = put_off and verb is StepVerb.KILL and step == 0 and not plan.key.startswith(BY_HAND)
    stops = put_off and verb is StepVerb.INTERRUPT
    passing = plan.row in BY_NAME and (merges or ends or BY_NAME[plan.row].passing)
    if not (passing or waits or stops or verb in FINAL):
        return plan
    facts = observe(session, newer_than=time.time() if verb in FINAL else 0.0).facts
    if verb in FINAL and facts.merged:
        return plan  # the next try finds that, and puts it on record
    if passing and (not _holds(plan, facts) or _reminds_under_hands(session, plan, facts)):
        return _take_back(session, plan, step, "it is over")
    if waits and (_is_stuck(session, plan, facts) or decide(facts, OVERTAKING).acts):
        withdraw(session, plan, step)
        drop(session, plan, "waited in vain to be delivered")
        return None
    if (stops or verb in FINAL) and (why := _find_reason_to_drop(session, plan, verb, facts)):
        drop(session, plan, why)
        return None
    if waits and decide(facts, INTERRUPTING).acts:
        return _take_back(session, plan, step, "has to wait")
    row = BY_NAME.get(plan.row)
    if waits and row and row.needs_slot(facts) and not slots.take(session):
        return _take_back(session, plan, step, "has to wait for a slot")
    return plan


def _holds(plan: Plan, facts: Facts) -> bool:
    """Whether the fact that the plan reacts to still holds."""
    row = BY_NAME[plan.row]
    return row.applies(facts) and row.key(facts) == plan.key


def _reminds_under_hands(session: IssueSession, plan: Plan, facts: Facts) -> bool:
    """Whether the plan is a reminder, and a person has come to the terminal since."""
    reminds = BY_NAME[plan.row].choose_deed(facts) is Disturbance.REMIND
    return reminds and find_obstacle(session, Disturbance.REMIND) is not None


def _is_stuck(session: IssueSession, plan: Plan, facts: Facts) -> bool:
    """Whether the message has waited so long that a person has to know; noted once."""
    problem = read_problem(session.dir)
    if problem is None or problem.refusal in PATIENT:
        return False
    stuck = f"{STUCK}{plan.key}"
    if retry.measure_age(session, plan) <= STUCK_S or stuck in facts.history.troubles:
        return False
    plans.add_receipt(session.dir, Receipt(time.time(), stuck, "stuck", trouble=problem.sentence))
    return True


def _find_reason_to_drop(session: IssueSession, plan: Plan, verb: StepVerb, facts: Facts) -> str:
    """Say why an interruption, or a step that cannot be taken back, is not tried again as it is."""
    if decide(facts, OVERTAKING).acts:
        return "something else is due first"
    if verb is StepVerb.INTERRUPT and _is_defied(session, plan, facts):
        return "its turn cannot be interrupted"
    return ""


def _is_defied(session: IssueSession, plan: Plan, facts: Facts) -> bool:
    """Whether a turn goes on so long after its due end that a person has to know.

    Noted once for each limit; the turn is interrupted further on.
    """
    halt = facts.history.halt
    if retry.measure_age(session, plan) <= DEFIED_S or (halt and halt.defied):
        return False
    noted = Receipt(
        time.time(),
        f"{DEFIED}:{plan.key}",
        plan.row,
        write=facts.halted,
        verb=StepVerb.INTERRUPT,
        detail=DEFIED,
    )
    plans.add_receipt(session.dir, noted)
    return True


def _take_back(session: IssueSession, plan: Plan, step: int, why: str) -> Plan | None:
    """Drop the plan; but a plan whose message the agent already has is finished."""
    if not withdraw(session, plan, step):
        return plan
    drop(session, plan, why)
    return None


def drop(session: IssueSession, plan: Plan, why: str) -> None:
    """Remove the plan, and say why."""
    session.project.record(events.Dropped(session=session.name, row=plan.row, reason=why))
    plans.drop(session.dir)


def is_commanded(session: IssueSession, plan: Plan) -> bool:
    """Whether neither a pause nor a person at the terminal holds the plan up.

    True for a person's own command, and if the session is overtaken.
    """
    told = plan.key.startswith(BY_HAND) or plans.has_receipt(session.dir, KILLED)
    return told or attempts.is_overtaken(session)


# During a pause


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
