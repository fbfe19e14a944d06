"""Planner: chooses what a pass does next, and with which plan; or when the pass rests."""

from __future__ import annotations

import hashlib
import math
import time

from msgspec import structs

from sm.base.redact import redact
from sm.base.refusal import Refusal
from sm.base.text import one_line
from sm.issues.act import brake, pending, starts
from sm.issues.act.compose import compose
from sm.issues.act.problem import SessionProblem, read_problem, write_problem
from sm.issues.look import issue_text
from sm.issues.look.observe import Observation, observe
from sm.issues.rules.decide import Decision, HeldReaction, decide
from sm.issues.rules.decision_input import Life
from sm.issues.rules.facts import Facts
from sm.issues.rules.outage import OutageError
from sm.issues.rules.spending import WHILE_PAUSED
from sm.issues.work import slots
from sm.messages import alerts
from sm.messages.presence import observe_hands
from sm.sessions import account_faults, pause
from sm.sessions import plan as plans
from sm.sessions.account_fault import AccountCourse
from sm.sessions.history import KILLED, Receipt
from sm.sessions.plan import Plan
from sm.sessions.presence_rule import LEFT_S
from sm.sessions.session import IssueSession
from sm.store import events
from sm.store.failpoint import crash_point
from sm.store.files import discard

REASON_LIMIT = 300
"""Greatest number of characters of an agent's reason that the journal has."""


def choose(session: IssueSession, newer_than: float) -> Plan | float:
    """Return the plan under way, or a new one; if nothing is due, when to look again.

    Times are seconds since 1970. A look at the forge that is not `newer_than` that is made again.
    """
    try:
        issue_text.refuse_another(session)
    except issue_text.AnotherIssueError:
        # Another issue with the same number is left alone; only a person's command to end goes on.
        if not plans.has_receipt(session.dir, KILLED):
            raise
    if pending.rests(session):
        return _choose_stop(session)
    return pending.find(session) or _decide(session, newer_than)


def choose_within_limits(session: IssueSession, _newer_than: float) -> Plan | float:
    """Return the plan under way, or one that ends a turn; else when to look again."""
    return pending.find(session) or _choose_stop(session)


def _choose_stop(session: IssueSession) -> Plan | float:
    """Return a plan that ends the turn of an agent over its limit; else when to look again."""
    if brake.may_stop(session) and not pending.find(session):
        seen = _observe(session, 0.0)
        decision = decide(seen.facts, WHILE_PAUSED)
        if decision.acts:
            return _save_plan(session, seen, decision)
    return time.time() + pause.PASS_S


def _decide(session: IssueSession, newer_than: float) -> Plan | float:
    """Save and return the plan for what is due now; else return when to look again."""
    settled_at = math.inf
    seen = _observe(session, newer_than)
    if seen.facts.session is Life.ALIVE:
        settled_at = starts.settle(session)
    elif starts.note(session):
        seen = _observe(session, newer_than)
    seen, decision = _consider(session, seen)
    _note_held(session, decision.held)
    if not decision.acts:
        _settle_slot(session, seen.facts, decision)
        return min(decision.wake_at, settled_at)
    try:
        return _save_plan(session, seen, decision)
    except OutageError as outage:
        # That run of CI counts as broken from now on, and no more as a failure of the commit.
        key, run, reason = f"outage:{outage.run}", outage.run, outage.reason
        receipt = Receipt(time.time(), key, "outage", run=run, outage=reason)
        plans.add_receipt(session.dir, receipt)
        session.project.record(events.Problem(session=session.name, text=reason))
        return _decide(session, newer_than)


def _save_plan(session: IssueSession, seen: Observation, decision: Decision) -> Plan:
    plan = compose(session, seen, decision)
    crash_point("plan:before-save")
    plans.save(session.dir, plan)
    crash_point("plan:after-save")
    limits = decision.row.list_limits(seen.facts.policy) if decision.row else {}
    session.project.record(
        events.Decided(
            session=session.name,
            row=plan.row,
            phase=seen.write.text,
            reason=one_line(redact(seen.write.reason), REASON_LIMIT),
            limits=limits,
            written_at=round(seen.write.at, 3) if seen.write.text else 0.0,
        )
    )
    return plan


def _consider(session: IssueSession, seen: Observation) -> tuple[Observation, Decision]:
    """Decide what is due, with the facts that it needs: who is at the terminal, is a slot free."""
    waited = seen.facts.slotless
    seen = _add_facts(seen, slotless=False)
    decision = decide(seen.facts)
    if decision.concerns_people:
        seen = _add_facts(seen, hands=observe_hands(session))
        decision = decide(seen.facts)
    if decision.row and decision.row.needs_slot(seen.facts) and not slots.take(session):
        if not waited:
            limit = session.project.settings.max_sessions
            why = f"no slot is free (max_sessions: {limit})"
            session.project.record(events.Waiting(session=session.name, reason=why))
        seen = _add_facts(seen, slotless=True, slot_at=seen.facts.now)
        decision = decide(seen.facts)
    account = seen.facts.account
    goes_on = decision.row is not None and decision.row.spends
    if account and account.is_in_line and goes_on and not account_faults.take_turn(session):
        seen = _add_facts(seen, account=structs.replace(account, way=AccountCourse.REST))
        decision = decide(seen.facts)
    return seen, decision


def _add_facts(seen: Observation, **facts: object) -> Observation:
    return structs.replace(seen, facts=structs.replace(seen.facts, **facts))


def _settle_slot(session: IssueSession, facts: Facts, decision: Decision) -> None:
    """Let the session hold a slot if its agent is at work, and else none."""
    if decision.queued:
        return
    if facts.is_at_work and not decision.held:
        slots.occupy(session)
    else:
        slots.free(session)


def _note_held(session: IssueSession, held: HeldReaction | None) -> None:
    """Show people what waits for a person at the terminal; the journal has it once.

    A draft may be forgotten there: after a while somebody has to know.
    """
    directory = session.dir
    if held is None:
        discard(directory.problem)
        return
    problem = SessionProblem(f"{held.deed} waits", held.refusal)
    if read_problem(directory) != problem:
        write_problem(directory, problem)
        session.project.record(events.Waiting(session=session.name, reason=problem.sentence))
        return
    since = directory.problem.stat().st_mtime
    if held.refusal is Refusal.DRAFT and time.time() > since + LEFT_S:
        text, look = f"is left as it is: {problem.sentence}", f"sm attach {session.address}"
        alerts.note(session, text, f"held:{since:.0f}", command=look)


def _observe(session: IssueSession, newer_than: float) -> Observation:
    seen = observe(session, newer_than=newer_than)
    if not seen.problem:
        return seen
    # An unreadable phase file cuts the agent off: a person has to know, once each time.
    told = f"{seen.facts.addressed_at:.0f}:{seen.problem}"
    cause = f"phase-file:{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    if cause in seen.facts.history.troubles:
        return seen
    plans.add_receipt(session.dir, Receipt(time.time(), cause, "phase-file", trouble=seen.problem))
    session.project.record(events.Problem(session=session.name, text=seen.problem))
    return observe(session, newer_than=newer_than)
