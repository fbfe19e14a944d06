"""Holds of a session without an issue, which has no matrix: a limit, or a fault of its account.

While it may spend nothing, nothing is typed to it, its turn is interrupted, and a person is told
once; it writes no document. At a fault it rests as all sessions of its account do. Afterwards it is
told to go on: after a raise, or when it is its turn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from sm.base.need import NeedKind
from sm.base.refusal import Refusal
from sm.issues import meters
from sm.issues.act import brake
from sm.issues.rules.allowance import DEFIED_S, STOPS, Allowance, LimitStage
from sm.messages import alerts, queue
from sm.messages.ids import derive_id
from sm.messages.presence import find_obstacle
from sm.messages.queue import Message, Mode
from sm.messages.turn_stop import StopResult
from sm.sessions import account_faults, agent, agent_state, spending_hold, turn
from sm.sessions.account_fault import AccountCourse
from sm.sessions.agent_state import State
from sm.sessions.launch import read_first_prompt
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import AdHocSession

AFTER_LIMIT = (
    "[sm] You may go on: what kept you from spending is over. Go on where you were interrupted."
)
AFTER_FAULT = (
    "[sm] Your last turn was cut short, as your account had no answer from its API. Go on where "
    "you were."
)
LIMIT_RETRY_S, ACCOUNT_RETRY_S = 1.0, 15.0
"""Time until it is tried again to stop a turn, or to let the session go on, in seconds."""

Restart = Callable[[str, str, int], None]
"""Starts the agent again with a prompt, its own session to resume, and a generation."""


def tend_limit(session: AdHocSession) -> float:
    """Tend to a limit; return when to look again, seconds since 1970."""
    before = spending_hold.read(session.dir)
    again_at = brake.tend(session)
    if before and before.stop and not spending_hold.is_set(session.dir):
        _let_go_on(session, AFTER_LIMIT, f"limit:{before.since:.6f}")
    limit = meters.read_allowance(session)
    if limit is None or not brake.must_stop(session, limit):
        return again_at
    if brake.may_spend(session):
        _tell_if_in_vain(session, limit)
    return min(again_at, _stop(session, limit))


def _tell_if_in_vain(session: AdHocSession, limit: Allowance) -> None:
    """Tell a person once of turns that go on, or come again and again, over a limit."""
    mark, now = spending_hold.read(session.dir), time.time()
    if mark is None or (mark.stops < STOPS and now < mark.staged_at + DEFIED_S):
        return
    text = f"is at work, and interruptions do not help: {meters.describe(limit, now)}"
    key = f"limit-runs-on:{limit.matter}:{mark.since:.0f}"
    command = f"sm attach {session.address}"
    alerts.note(session, text, key, need=NeedKind.BUDGET, command=command)


def _stop(session: AdHocSession, limit: Allowance) -> float:
    """Interrupt what runs; tell of the limit once that is done."""
    told = agent_state.read(session.dir)
    if told.state in brake.SPENDING or not session.profile.hooks:
        ident = derive_id(f"{session.name}:{limit.matter}:{told.since:.6f}")
        found = brake.stop(session, ident)
        if isinstance(found, Refusal) or found is StopResult.NO_END:
            return time.time() + LIMIT_RETRY_S
        if told.state is State.BUSY:
            agent_state.overrule(session.dir, told, State.IDLE)
    text = f"may spend no more: {meters.describe(limit, time.time())}"
    key, command = f"limit:{limit.matter}", limit.command
    if limit.stage is LimitStage.BLIND:  # which may come again
        key += f":{spending_hold.find_stage_time(session.dir):.0f}"
    alerts.note(session, text, key, need=NeedKind.BUDGET, command=command)
    return math.inf


def tend_account(session: AdHocSession, restart: Restart) -> float:
    """Tend to a fault of the account; return when to look again, seconds since 1970."""
    again_at = alerts.tend_account(session, 0.0)
    told = agent_state.read(session.dir)
    failure = turn.read(session.dir, told).failure if session.profile.hooks else None
    standing = account_faults.read_standing(session, failure, gone=False)
    if (
        standing is None
        or failure is None
        or standing.way in (AccountCourse.REST, AccountCourse.ASK)
    ):
        return again_at
    if standing.way is AccountCourse.RESTART and find_obstacle(session, Disturbance.RESTART):
        return time.time() + ACCOUNT_RETRY_S
    if not account_faults.take_turn(session):
        return time.time() + ACCOUNT_RETRY_S
    if standing.way is AccountCourse.GO_ON:
        _let_go_on(session, AFTER_FAULT, f"account:{failure.at:.6f}")
    else:
        known, prompt = agent.load(session.dir), AFTER_FAULT
        if failure.at_menu:  # it has not had its first prompt yet
            prompt = read_first_prompt(session.dir)
        restart(prompt, told.context, known.generation + 1 if known else 1)
    return math.inf


def _let_go_on(session: AdHocSession, text: str, why: str) -> None:
    ident = derive_id(f"{session.name}@{session.record.created_at}:{why}")
    queue.put(session.dir, Message(id=ident, text=text, mode=Mode.IMPORTANT))
