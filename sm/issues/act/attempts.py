"""Extra care for a session that another installation has placed here.

For a session that has no attempt, as most have none, every function does nothing.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

from sm.base.act_guard import OvertakenError
from sm.issues.act.retry import ELSEWHERE
from sm.issues.look.snapshot import last_snapshot
from sm.sessions import fence as fences
from sm.sessions import plan as plans
from sm.sessions.fence import Fence, describe_overtaken, name_claim
from sm.sessions.history import OVERTAKEN, Receipt, StepVerb
from sm.sessions.session import IssueSession
from sm.store import events

LAST = frozenset({StepVerb.RELEASE_CLAIM, StepVerb.FORGET})
"""Last steps of a session, whose claim it has itself given up by then."""
WITHIN_S = 60.0
"""Pause between looks, within a turn, whether the agent has committed something, in seconds."""


@contextlib.contextmanager
def fence_in(session: IssueSession) -> Iterator[Fence | None]:
    """Let the pass act only while the session has the issue; None if it cannot be overtaken."""
    if not session.record.attempt or is_overtaken(session) or is_ending(session):
        yield None
        return
    with fences.guard(session) as fence:
        _compare_with_last_look(session)
        yield fence


def is_overtaken(session: IssueSession) -> bool:
    """Whether it is known that another attempt has the issue."""
    return bool(session.record.attempt) and plans.has_receipt(session.dir, OVERTAKEN)


def is_outward(session: IssueSession, verb: StepVerb) -> bool:
    """Whether others can see that step; the release of a claim checks that itself."""
    return bool(session.record.attempt) and verb in ELSEWHERE


def note(session: IssueSession, fence: Fence | None) -> None:
    """Record what the fence has found; what was about to be done may have passed it over."""
    if fence and fence.said and session.dir.identity.exists():
        give_up(session, fence.said)


def give_up(session: IssueSession, why: str) -> None:
    """Let the session end: what it was about to do is dropped."""
    if is_overtaken(session):
        return
    said = Receipt(time.time(), OVERTAKEN, OVERTAKEN, detail=why)
    plans.add_receipt(session.dir, said)
    if plan := plans.read_pending(session.dir):
        session.project.record(events.Dropped(session=session.name, row=plan.row, reason=why))
        plans.drop(session.dir)


def save_work(session: IssueSession) -> float:
    """Push the work as it is when a turn has just ended, or the agent has committed something.

    Returns when to look again, in seconds since 1970.
    """
    from sm.issues.work import wip  # most sessions have no attempt

    with contextlib.suppress(OvertakenError):  # the fence remembers that
        wip.save_if_due(session)
    return time.time() + WITHIN_S if wip.is_in_turn(session) else math.inf


def is_ending(session: IssueSession) -> bool:
    """Whether the session is at its last steps, so that its claim may be gone."""
    plan = plans.read_pending(session.dir)
    if plan is None or not plan.ends_session:
        return False
    step = plans.find_next_step(plan, plans.read_receipts(session.dir))
    return step < len(plan.steps) and plan.steps[step].verb in LAST


def _compare_with_last_look(session: IssueSession) -> None:
    """Note an overtaking from known facts; a claim that is gone may have been released by us."""
    record, seen = session.record, last_snapshot(session.project.directory)
    if seen is None or seen.taken_at <= record.created_at:
        return
    held = seen.refs.get(name_claim(record.issue), "")
    if held not in ("", record.claim):
        give_up(session, describe_overtaken(record.issue, record.attempt, held))
