"""What follows when a rotation is over: the record of it, and who is told.

Each function may be called again after it was cut short: whatever was done is found again. The
caller holds the delivery lock.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sm.errors import SmError, StateError
from sm.history import Count, Receipt
from sm.material import one_line, path
from sm.rotation import Cause, Rotation, Step
from sm.session import agentstate, health, queue, readings, registry
from sm.session import plan as plans
from sm.session.health import FINISHED, HOUR_S, RAISED
from sm.session.queue import Message, Mode
from sm.session.registry import IssueSession, Session
from sm.session.submission import Target
from sm.store import journal
from sm.store.crash import crash_point
from sm.workflow import documents, people
from sm.workflow.messages import notice_id

if TYPE_CHECKING:
    from sm.workflow.policy import Policy

AFTER = (Step.RESUME, Step.VERIFY)
"""In these steps the context is a new one."""


def finished(target: Target, record: Rotation, policy: Policy) -> None:
    """The agent goes on in its new context."""
    session = target.session
    _begin_anew(session, record)
    _note(session, record)
    _tell_if_frequent(session, record, policy)
    with suppress(SmError):  # the working directory may be gone
        folder = documents.folder(session, policy.cycle)
        documents.prune(folder, policy.cycle.keep, never=Path(record.document))


def given_up(target: Target, record: Rotation, reason: str, policy: Policy) -> None:
    """The context was not replaced, or nothing shows that the agent goes on in the new one."""
    session = target.session
    if record.step in AFTER:
        _begin_anew(session, record)
        what = "is not known to go on in its new context"
    else:
        what = "could not be given a new context"
    _note(session, record, reason)
    crash_point("outcome:noted")
    if _is_waiting(session, record):
        _tell_agent(session, record, reason)
    crash_point("outcome:told-agent")
    people.note(session, f"{what}: {reason}", f"rotation:{record.id}", policy)


def _begin_anew(session: Session, record: Rotation) -> None:
    """What the old context was told counts for nothing in the new one."""
    _rearm(session, record)
    key = f"context:{record.id}"
    with suppress(StateError):  # whoever reacts to the receipts says what is wrong with them
        if not any(known.plan == key for known in plans.receipts(session.dir)):
            begun = Receipt(time.time(), key, "context", counts=Count.NEW_CONTEXT)
            plans.add_receipt(session.dir, begun)


def _rearm(session: Session, record: Rotation) -> None:
    """The new context fills up from nought; a reading of it may have shown that already."""
    if readings.flags(session.dir).reset_at < record.resumed_at:
        readings.rearm(session.dir, record.resumed_at)


def _note(session: Session, record: Rotation, error: str = "") -> None:
    project = session.project if isinstance(session, IssueSession) else ""
    entry = health.of_rotation(
        record, time.time(), project=project, session=session.name, error=error
    )
    if _is_new(session, entry):
        told = f"given up: {error}" if error else f"{FINISHED}, {_took(entry.details)}"
        journal.record(session.root.journal, "rotation", session.name, told)


def _is_new(session: Session, entry: health.Health) -> bool:
    """Put it on record, if it is not; an agent must not be held up where that cannot be."""
    try:
        return health.append(session.root, entry)
    except StateError as error:
        journal.record(session.root.journal, "problem", session.name, error.message)
        return True


def _took(details: health.Details) -> str:
    return f"after {details.cycle_duration_ms / 1000:.1f} s with '{details.handoff_file}'"


def _is_waiting(session: Session, record: Rotation) -> bool:
    """Whether the agent has done its part, and is in the context still that it wants replaced."""
    asked = record.cause is Cause.HANDOFF or record.step is not Step.REQUEST or record.requests > 1
    present = agentstate.read(session.dir).context
    return asked and record.step not in AFTER and record.context in ("", present)


def _tell_agent(session: Session, record: Rotation, reason: str) -> None:
    own = record.cause is Cause.HANDOFF
    what = (
        f"The handoff to {path(record.document)} was not done"
        if own
        else "Your context was not replaced"
    )
    text = f"[sm] {what}: {one_line(reason)}. It is as it was: go on with your work."
    ident = notice_id(session, f"rotation:{record.id}:agent")
    queue.put(session.dir, Message(id=ident, text=text, mode=Mode.IMPORTANT))
    registry.poke(session.dir)


def _tell_if_frequent(session: Session, record: Rotation, policy: Policy) -> None:
    """More than one automated cycle an hour: the context fills up faster than a new one helps."""
    if record.cause is not Cause.CYCLE:
        return
    count = len(health.cycles(session.root, session.name, time.time(), HOUR_S))
    if count > 1:
        text = (
            f"has needed {count} handoff cycles within an hour: its context fills up fast; for an "
            f"hour the next one begins {RAISED:g} points later"
        )
        people.note(session, text, f"frequent:{record.id}", policy)
