"""Brings the mark of a session that may spend nothing in line with what the meters say."""

from __future__ import annotations

import math
import time

from sm.issues import meters
from sm.issues.rules.allowance import STOPPING, Allowance, Stage
from sm.sessions import agent_state, registry, spending_hold
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.sessions.spending_hold import Brake
from sm.store.failpoint import crash_point

LOOK_S = 2.0
"""So often it is looked how much is left while the agent may spend. With what it takes to read that
and to end the turn, no limit is exceeded for longer than ten seconds."""
UNUSABLE_S = 60.0
"""So late at most it is noticed that a configuration which could not be used is mended."""
SPENDING = (State.BUSY, State.WAITING)
"""Also what it has left running in the background spends."""


def tend(session: Session) -> float:
    """Put the mark there or take it away; return when to look again, seconds since 1970.

    It comes before all else in a pass: what that would type is not typed any more.
    """
    allowance = meters.read_allowance(session)
    _mark(session, allowance)
    crash_point("limit:marked")
    if allowance is None or not may_spend(session):
        return math.inf
    look_at = time.time() + LOOK_S
    if allowance.stage is Stage.BLIND:
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
    return known is not None and known.stage in (Stage.BLIND, *STOPPING)


def must_stop(session: Session, allowance: Allowance | None) -> bool:
    """Whether a turn of the session that runs is to end now."""
    held_since = spending_hold.find_stage_time(session.dir)
    return allowance is not None and allowance.stops(time.time(), held_since)


def confirm_stop(session: Session) -> Brake | None:
    """The mark, if a turn that runs is to end still; None if that has lost its sense.

    A limit may have been reached since the pass began, or it is known again what was spent.
    """
    allowance = meters.read_allowance(session)
    _mark(session, allowance)
    return spending_hold.read(session.dir) if must_stop(session, allowance) else None


def wake_if_changed(session: Session) -> None:
    """Have a pass made at once if the limit is used up further than the last one has seen.

    A plugin has just counted what the agent has spent.
    """
    allowance, known = meters.read_allowance(session), spending_hold.read(session.dir)
    stage = allowance.stage if allowance and allowance.holds else ""
    if stage != (known.stage if known else ""):
        registry.poke(session.dir)


def may_spend(session: Session) -> bool:
    """Whether its agent is at work, as far as is known."""
    return not session.profile.hooks or agent_state.read(session.dir).state in SPENDING
