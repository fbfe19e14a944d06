"""Brake of a session: keeps the mark of one that may spend nothing in line with its meters."""

from __future__ import annotations

import math
import time
from functools import partial

from sm.base.refusal import Refusal
from sm.issues import meters
from sm.issues.rules.allowance import STOPPING, Allowance, LimitStage
from sm.messages.presence import find_obstacle
from sm.messages.queue import Message
from sm.messages.turn_stop import StopResult, stop_all
from sm.sessions import agent_state, registry, spending_hold
from sm.sessions.agent_state import State
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import AnySession, Session
from sm.sessions.spending_hold import Brake
from sm.store.failpoint import crash_point

LOOK_S = 2.0
"""Pause between looks at what is left while the agent may spend, in seconds. With the time to read
it and to end the turn, no limit is exceeded for longer than ten seconds."""
UNUSABLE_S = 60.0
"""Longest time until a mended configuration is noticed, in seconds."""
SPENDING = (State.BUSY, State.WAITING)
"""States that spend: work left running in the background does, too."""


def tend(session: Session) -> float:
    """Set or remove the mark; return when to look again, in seconds since 1970.

    In a pass this comes first: what the pass would type is then not typed any more.
    """
    allowance = meters.read_allowance(session)
    _mark(session, allowance)
    crash_point("limit:marked")
    if allowance is None or not may_spend(session):
        return math.inf
    look_at = time.time() + LOOK_S
    if allowance.stage is LimitStage.BLIND:
        return min(look_at, allowance.stops_at(spending_hold.find_stage_time(session.dir)))
    return look_at


def _mark(session: Session, allowance: Allowance | None) -> None:
    if allowance is not None and allowance.holds:
        spending_hold.put_on(session.dir, allowance.stage)
    else:
        spending_hold.release(session.dir)


def may_stop(session: Session) -> bool:
    """Whether the mark says that a turn which runs has to end, now or soon."""
    known = spending_hold.read(session.dir)
    return known is not None and known.stage in (LimitStage.BLIND, *STOPPING)


def must_stop(session: Session, allowance: Allowance | None) -> bool:
    """Whether a turn of the session that runs is to end now."""
    held_since = spending_hold.find_stage_time(session.dir)
    return allowance is not None and allowance.stops(time.time(), held_since)


def confirm_stop(session: Session) -> Brake | None:
    """Return the mark if a running turn still has to end; None if there is no reason any more.

    A limit may have been reached since the pass began, or the spending is known again.
    """
    allowance = meters.read_allowance(session)
    _mark(session, allowance)
    return spending_hold.read(session.dir) if must_stop(session, allowance) else None


def stop(session: AnySession, ident: str) -> StopResult | Refusal:
    """Interrupt what runs, unless a person is at its terminal; the mark notes it as `ident`."""
    by, note = Message(id=ident, text=""), partial(spending_hold.note_stop, session.dir, ident)
    return stop_all(session, by, partial(find_obstacle, session, Disturbance.BRAKE), note)


def wake_if_changed(session: Session) -> None:
    """Start a pass at once if more of the limit is used up than the last pass has seen.

    A plugin has just counted what the agent has spent.
    """
    allowance, known = meters.read_allowance(session), spending_hold.read(session.dir)
    stage = allowance.stage if allowance and allowance.holds else ""
    if stage != (known.stage if known else ""):
        registry.poke(session.dir)


def may_spend(session: Session) -> bool:
    """Whether its agent is at work, as far as is known."""
    return not session.profile.hooks or agent_state.read(session.dir).state in SPENDING
