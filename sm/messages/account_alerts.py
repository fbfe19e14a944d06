"""Tells people once of a fault of an account, and keeps what is known of it up to date."""

from __future__ import annotations

import math
import time

from sm.base.clock import format_time
from sm.base.need import NeedKind
from sm.messages import alerts, screen_state
from sm.sessions import account_faults, agent_state
from sm.sessions.account_fault import AccountCourse, AccountFault
from sm.sessions.failure import FailureCause
from sm.sessions.session import Session


def tend(session: Session, remind_s: float) -> float:
    """Keep the fault, tell people, and remind them; return when to look again, seconds since 1970.

    Raises:
        StateError: the fault cannot be kept.

    """
    told = screen_state.note_failed_turn(session, agent_state.read(session.dir))
    found = account_faults.update(session, told)
    if found is None or session.name not in found[1].sessions:
        return math.inf
    ident, known = found
    now = time.time()
    standing = account_faults.judge(session, known)
    again_at = standing.until if standing.way is AccountCourse.REST else math.inf
    if known.teller == session.name and not known.works:
        tries = known.probe in known.sessions and known.sessions[known.probe].tries_now
        look_s = account_faults.TRIED_S if tries else account_faults.LOOK_S
        again_at = min(again_at, now + look_s)
        if now < known.asks_at:
            again_at = min(again_at, known.asks_at)
        _tell(session, ident, known, remind_s)
    return again_at


def _tell(session: Session, ident: str, known: AccountFault, remind_s: float) -> None:
    """Tell people once for the account, and again if nobody comes."""
    now = time.time()
    if not known.is_told(now):
        return
    is_needed = known.needs_person(now)
    # People hear of a limit before they are needed.
    times = 1 if known.fault is FailureCause.ACCESS or not is_needed else 2
    if is_needed and remind_s:
        times += int(max(now - known.since, 0.0) // remind_s)
    if known.told >= times:
        return
    text = word_fault(known, now)
    kind = NeedKind.LOGIN if known.fault is FailureCause.ACCESS else NeedKind.LIMITS
    command = f"sm attach {session.address.replace('#', ' ')}"
    key = f"account:{ident}:{known.since:.3f}:{times}"
    alerts.note(session, f"{text}. {command}", key, parent=False, need=kind, command=command)
    account_faults.note_told(session.root, ident, times)


def word_fault(known: AccountFault, now: float) -> str:
    """Say what the session waits for, going on from its name."""
    what, until = known.name, f" until {format_time(known.until, now)}"
    if known.fault is FailureCause.ACCESS:
        what, until = f"the login of {known.name}", ""
    said = f" (“{known.notice}”)" if known.notice else ""
    return (
        f"waits for {what}{until}: {known.fault}{said}. "
        "All sessions of that account rest, and go on by themselves"
    )
