"""Ends a rotation: puts it on record, and tells people and the agent.

Each function may be called again after it was cut short, and finds what it has done already. The
caller holds the delivery lock.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from sm.base.errors import SmError, StateError
from sm.base.quotation import SENTENCE_LIMIT, path
from sm.base.text import one_line
from sm.context import documents, health_log, usage
from sm.context.flags import read_flags, rearm, save_flags
from sm.context.health_log import HOUR_S, RAISED
from sm.context.rotation import Cause, RotationRecord, RotationStage
from sm.context.rotation_files import note
from sm.context.thresholds import FULL, mark_in_vain
from sm.messages import alerts, queue
from sm.messages.notification import make_event_id
from sm.messages.queue import Message, Mode
from sm.sessions import agent_state, registry
from sm.sessions import plan as plans
from sm.sessions.history import Count, Receipt
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.events import RotationStep
from sm.store.failpoint import crash_point


def finish(session: Session, record: RotationRecord) -> None:
    """End the rotation: the agent goes on in its new context."""
    _begin_anew(session, record)
    _note(session, record)
    if record.cause is Cause.CYCLE:
        count = len(health_log.find_cycles(session.root, session.name, time.time(), HOUR_S))
        if count > 1:  # the context fills too fast
            text = (
                f"has needed {count} handoff cycles within an hour: its context fills up fast; for "
                f"an hour the next one begins {RAISED:g} points later"
            )
            alerts.note(session, text, f"frequent:{record.id}")
    with suppress(SmError):  # the working directory may be gone
        folder = documents.find_folder(session, session.settings.cycle)
        documents.prune(folder, session.settings.cycle.keep, never=Path(record.document))


def give_up(session: Session, record: RotationRecord, reason: str) -> None:
    """Give the rotation up.

    The context was not replaced, or nothing shows that the agent goes on in the new one.
    """
    if record.cause is Cause.LEAVE:  # the session ends anyway, so nobody has to do anything
        note(session, events.Rotation(step=RotationStep.GIVEN_UP, cause="leave", reason=reason))
        return
    present = agent_state.read(session.dir).context  # the last clear may have worked after all
    if record.is_replaced:
        _begin_anew(session, record)
        what = "is not known to go on in its new context"
    else:
        what = "could not be given a new context"
        _try_again_later(session, record, present)
    _note(session, record, reason)
    crash_point("outcome:noted")
    if _is_waiting(record, present):
        _tell_agent(session, record, reason)
    crash_point("outcome:told-agent")
    alerts.note(session, f"{what}: {reason}", f"rotation:{record.id}")


def _begin_anew(session: Session, record: RotationRecord) -> None:
    """Forget what the old context was told: it counts for nothing in the new one."""
    # The new context fills from nought, as a reading may have shown already.
    if read_flags(session.dir).reset_at < record.resumed_at:
        rearm(session.dir, record.resumed_at)
    key = f"context:{record.id}"
    with suppress(StateError):  # the reactor says what is wrong with them
        if not plans.has_receipt(session.dir, key):
            begun = Receipt(time.time(), key, "context", counts=Count.NEW_CONTEXT)
            plans.add_receipt(session.dir, begun)


def _try_again_later(session: Session, record: RotationRecord, present: str) -> None:
    """Let another cycle begin later: the context is as full as before, or was only summed up."""
    flags = read_flags(session.dir)
    if record.cause is not Cause.CYCLE or flags.context != present:
        return
    if not flags.cycled and present and record.context == present:  # a compaction came between
        save_flags(session.dir, mark_in_vain(flags, FULL, time.time()))
    elif flags.cycled:
        reading = usage.read_current(session.dir, flags)
        percent = (reading and reading.percent) or record.percent or FULL
        save_flags(session.dir, mark_in_vain(flags, percent, time.time()))


def _note(session: Session, record: RotationRecord, error: str = "") -> None:
    entry = health_log.make_entry(
        record, time.time(), project=session.project_name, session=session.name, error=error
    )
    if _is_new(session, entry):
        journal.record(session.root.journal, _make_event(entry, error))


def _is_new(session: Session, entry: health_log.RotationOutcome) -> bool:
    """Put the end on record; False if it is there. A failure must not hold the agent up."""
    try:
        return health_log.append(session.root, entry)
    except StateError as error:
        problem = events.Problem(session=session.name, text=error.message)
        journal.record(session.root.journal, problem)
        return True


def _make_event(entry: health_log.RotationOutcome, error: str) -> events.Rotation:
    details, cause = entry.details, entry.details.cause
    told = events.Rotation(
        session=entry.session,
        step=RotationStep.FINISHED,
        cause=str(cause),
        document=details.handoff_file,
        took_s=details.cycle_duration_ms / 1000,
        task=None if cause is Cause.HANDOFF else details.task,  # it was not asked
    )
    if error:
        return structs.replace(told, step=RotationStep.GIVEN_UP, reason=error, task=None)
    return told


def _is_waiting(record: RotationRecord, present: str) -> bool:
    """Whether the agent has done its part, and is still in the context that it wants replaced."""
    asked = (
        record.cause is Cause.HANDOFF
        or record.step is not RotationStage.REQUEST
        or record.requests > 1
    )
    return asked and not record.is_replaced and record.context in ("", present)


def _tell_agent(session: Session, record: RotationRecord, reason: str) -> None:
    own = record.cause is Cause.HANDOFF
    what = (
        f"The handoff to {path(record.document)} was not done"
        if own
        else "Your context was not replaced"
    )
    why = one_line(reason, SENTENCE_LIMIT)
    text = f"[sm] {what}: {why}. It is as it was: go on with your work."
    ident = make_event_id(session, f"rotation:{record.id}:agent")
    queue.put(session.dir, Message(id=ident, text=text, mode=Mode.IMPORTANT))
    registry.poke(session.dir)
