"""False starts: notes that an agent has ended as it started; does not count one by the machine."""

from __future__ import annotations

import math
import time

from sm.base.redact import redact
from sm.base.text import one_line
from sm.sessions import false_starts, terminal
from sm.sessions import plan as plans
from sm.sessions.false_start import AT_ONCE_S, FalseStart
from sm.sessions.history import Count, Receipt, StepVerb
from sm.sessions.session import IssueSession
from sm.store import events

WORDS = 200
"""Greatest number of characters of an agent's last line."""


def note(session: IssueSession) -> bool:
    """Note the result of a gone agent's last start, before the next one is decided.

    Returns whether anything new is known now.
    """
    receipts = plans.read_receipts(session.dir)
    last = _find_last(receipts)
    if last is None:
        return False
    known = false_starts.read(session.root, session.name)
    is_new = known is None or known.at != last.at
    if is_new and not _has_ended_at_once(session, last):
        false_starts.clear(session.root, session.name)
        return known is not None  # what was seen of an earlier start counts no more
    if is_new:
        false_starts.note(session.root, session.name, _make(session, last))
    return _take_back(session, receipts) or is_new


def settle(session: IssueSession) -> float:
    """Forget earlier false starts once a living agent works; return when to look again.

    That moment is in seconds since 1970, infinity for never.
    """
    known = false_starts.read(session.root, session.name)
    last = _find_last(plans.read_receipts(session.dir)) if known else None
    if last is None:
        return math.inf
    if session.dir.client.exists() or time.time() >= last.at + AT_ONCE_S:
        false_starts.clear(session.root, session.name)
        return math.inf
    return last.at + AT_ONCE_S


def _find_last(receipts: list[Receipt]) -> Receipt | None:
    return next(
        (one for one in reversed(receipts) if one.verb in (StepVerb.START, StepVerb.RECOVER)), None
    )


def _has_ended_at_once(session: IssueSession, last: Receipt) -> bool:
    """Whether the agent has done nothing: no hook was called, or there was none to call."""
    if last.detail.startswith(plans.FAILED):
        return True
    return not session.dir.client.exists() and 0 <= time.time() - last.at < AT_ONCE_S


def _make(session: IssueSession, last: Receipt) -> FalseStart:
    said = last.detail.removeprefix(plans.FAILED) if last.detail.startswith(plans.FAILED) else ""
    words = said or terminal.read_tail(session.terminal_log, 1)
    return FalseStart(last.at, one_line(redact(words), WORDS), resume=last.resumed)


def _take_back(session: IssueSession, receipts: list[Receipt]) -> bool:
    """Count the start for nothing, once, if the machine is what ended it."""
    now = time.time()
    found = false_starts.find_of_machine(session.root, session.name, now)
    if found is None:
        return False
    key = f"false-start:{found.at:.3f}"
    if any(one.plan == key for one in receipts):
        return False
    plans.add_receipt(session.dir, Receipt(now, key, "false-start", counts=Count.FALSE_START))
    what = "could not be started" if found.lacks_program else "has ended as it started, like others"
    said = f"its agent {what}, which costs no attempt: {found.reason}"
    session.project.record(events.Problem(session=session.name, text=said))
    return True
