"""Handles a limit of a session without an issue, which has no matrix.

Nothing is typed to it while it may spend nothing, its turn is interrupted, and a person is told
once. It writes no document. After a raise it is told to go on.
"""

from __future__ import annotations

import math
import time
from functools import partial

from sm.base.need import NeedKind
from sm.base.refusal import Refusal
from sm.issues import meters
from sm.issues.act import limiting
from sm.issues.rules.allowance import DEFIED_S, STOPS, Allowance, LimitStage
from sm.messages import alerts, queue
from sm.messages.ids import derive_id
from sm.messages.presence import find_obstacle
from sm.messages.queue import Message, Mode
from sm.messages.turn_stop import StopResult, stop_all
from sm.sessions import agent_state, spending_hold
from sm.sessions.agent_state import State
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import AdHocSession
from sm.sessions.spending_hold import Brake

GO_ON = "[sm] You may go on: what kept you from spending is over. Go on where you were interrupted."
RETRY_S = 1.0


def tend(session: AdHocSession) -> float:
    """Tend to the limit; return when to look again, seconds since 1970."""
    before = spending_hold.read(session.dir)
    again_at = limiting.tend(session)
    if before and before.stop and not spending_hold.is_set(session.dir):
        queue.put(session.dir, _word_to_go_on(session, before))
    limit = meters.read_allowance(session)
    if limit is None or not limiting.must_stop(session, limit):
        return again_at
    if limiting.may_spend(session):
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


def _word_to_go_on(session: AdHocSession, mark: Brake) -> Message:
    ident = derive_id(f"{session.name}@{session.record.created_at}:limit:{mark.since:.6f}")
    return Message(id=ident, text=GO_ON, mode=Mode.IMPORTANT)


def _stop(session: AdHocSession, limit: Allowance) -> float:
    """Interrupt what runs; tell of the limit once that is done."""
    told = agent_state.read(session.dir)
    if told.state in limiting.SPENDING or not session.profile.hooks:
        ident = derive_id(f"{session.name}:{limit.matter}:{told.since:.6f}")
        found = stop_all(
            session,
            Message(id=ident, text=""),
            partial(find_obstacle, session, Disturbance.BRAKE),
            partial(spending_hold.note_stop, session.dir, ident),
        )
        if isinstance(found, Refusal) or found is StopResult.NO_END:
            return time.time() + RETRY_S
        if told.state is State.BUSY:
            agent_state.overrule(session.dir, told, State.IDLE)
    text = f"may spend no more: {meters.describe(limit, time.time())}"
    key, command = f"limit:{limit.matter}", limit.command
    if limit.stage is LimitStage.BLIND:  # which may come again
        key += f":{spending_hold.find_stage_time(session.dir):.0f}"
    alerts.note(session, text, key, need=NeedKind.BUDGET, command=command)
    return math.inf
