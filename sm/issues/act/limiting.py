"""Brings the mark of a session that may spend nothing in line with what the meters say."""

from __future__ import annotations

import math
import time

from sm.issues import meters
from sm.issues.rules.allowance import STOPPING, Allowance
from sm.sessions import agent_state, brake, registry
from sm.sessions.agent_state import State
from sm.sessions.brake import Brake
from sm.sessions.session import Session
from sm.store.failpoint import crash_point

LOOK_S = 3.0
"""So often it is looked how much is left while the agent may spend. With what it takes to read that
and to end the turn, no limit is exceeded for longer than ten seconds."""
SPENDING = (State.BUSY, State.WAITING)
"""Also what it has left running in the background spends."""


def tend(session: Session) -> float:
    """Put the mark there or take it away; return when to look again, seconds since 1970.

    It comes before all else in a pass: what that would type is not typed any more.
    """
    allowance = meters.read_allowance(session)
    _mark(session, allowance)
    crash_point("limit:marked")
    if allowance is None or not _may_spend(session):
        return math.inf
    return time.time() + LOOK_S


def _mark(session: Session, allowance: Allowance | None) -> None:
    if allowance is not None and allowance.holds:
        brake.put_on(session.dir, allowance.stage)
    else:
        brake.release(session.dir)


def stops(session: Session) -> bool:
    """Whether the mark says that a turn which runs is to end at once."""
    known = brake.read(session.dir)
    return known is not None and known.stage in STOPPING


def confirm_hold(session: Session) -> Brake | None:
    """The mark, put there now if a limit was reached since the pass began; None if none holds."""
    if not brake.is_set(session.dir):
        _mark(session, meters.read_allowance(session))
    return brake.read(session.dir)


def wake_if_changed(session: Session) -> None:
    """Have a pass made at once if the limit is used up further than the last one has seen.

    A plugin has just counted what the agent has spent.
    """
    allowance, known = meters.read_allowance(session), brake.read(session.dir)
    stage = allowance.stage if allowance and allowance.holds else ""
    if stage != (known.stage if known else ""):
        registry.poke(session.dir)


def _may_spend(session: Session) -> bool:
    return not session.profile.hooks or agent_state.read(session.dir).state in SPENDING
