"""Carries the rotation of a session's context on: observe, decide, act, under the delivery lock.

The Stop hook's executor, the monitor and the reactor all call it. If one of them is killed, nothing
is lost: the record says what was about to be done, and every act may be repeated.
"""

from __future__ import annotations

import contextlib
import math
import time

from msgspec import structs

from sm.adapters.tmux import TmuxError
from sm.base.errors import StateError, TemporaryError
from sm.base.nonce import make_nonce
from sm.base.quotation import SENTENCE_LIMIT
from sm.base.text import one_line
from sm.context import documents, rotation_files
from sm.context.act import Relaunch, perform
from sm.context.decide import decide
from sm.context.observe import observe
from sm.context.rotation import Cause, RotationRecord, RotationStage, StepTimeouts, begin
from sm.context.rotation_files import align, note, note_rotated, save
from sm.messages import alerts, delivery, queue
from sm.messages.queue import Message, Mode
from sm.sessions import agent, agent_state, monitors, pause, registry, spending_hold
from sm.sessions.session import Session
from sm.store import events, lock
from sm.store.events import RotationStep
from sm.store.failpoint import crash_point

ROUNDS = 30
"""Number of decisions in one pass; it comes to rest after a few."""
LOCK_S = 30.0
RETRY_S = 1.0
LOOK_S = 2.0
"""Interval of looks at an agent without hooks, in seconds: nothing else tells what it has done."""


def advance(session: Session, relaunch: Relaunch | None = None) -> float:
    """Do what is due; return when to look again at the latest, seconds since 1970.

    Raises:
        TemporaryError: tmux did not answer; it is tried again.

    """
    directory = session.dir
    if not rotation_files.is_wanted(directory):
        return math.inf
    try:
        with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
            return _advance(session, relaunch)
    except lock.HeldError:
        return time.time() + RETRY_S


def rotate(session: Session) -> None:
    """Do what is due now, for the hook of the agent's turn that has ended; its monitor goes on.

    Raises:
        UsageError: the session's configuration cannot be used.

    """
    session.configure()
    with contextlib.suppress(TemporaryError, TmuxError):  # the monitor tries again
        advance(session)
    if rotation_files.is_wanted(session.dir):
        monitors.ensure(session)
    with contextlib.suppress(TemporaryError, TmuxError):
        delivery.drain(session)
    registry.poke(session.dir)


def begin_cycle(
    session: Session, cause: Cause, percent: float | None, context: str = ""
) -> RotationRecord | None:
    """Put a cycle on record, which `advance` carries on.

    None if there is a rotation already, or the agent is not in `context` any more.

    Raises:
        StateError: there is no place for its document.
        HeldError: another process has held the delivery lock for very long.

    """
    folder = documents.find_folder(session, session.settings.cycle)
    with lock.hold(session.dir.delivery_lock, timeout_s=LOCK_S):
        if rotation_files.read_record(session.dir) or rotation_files.read_wish(session.dir):
            return None
        present = _read_context_under_lock(session)
        if context not in ("", present):
            return None
        documents.prepare(folder)
        documents.hide_beside(session, session.settings.cycle)
        launch = agent.read_generation(session.dir)
        new = begin(make_nonce(8), cause, time.time(), present, launch=launch)
        before = documents.read_stamps(folder)
        beside = documents.read_stamps_beside(session, folder)
        record = structs.replace(
            new, percent=percent, folder=str(folder), before=before, beside=beside
        )
        save(session, record)
    note(
        session,
        events.Rotation(step=RotationStep.BEGUN, cause=str(cause), percent=percent),
    )
    return record


def _read_context_under_lock(session: Session) -> str:
    """Read the agent's context again: a decision before the lock may have known another."""
    return agent_state.read(session.dir).context


def _advance(session: Session, relaunch: Relaunch | None) -> float:
    for _ in range(ROUNDS):
        record = _current(session)
        if record is None:
            return math.inf
        rests = pause.is_paused(session.dir) or spending_hold.is_set(session.dir)
        if rests and not record.must_go_on:
            return math.inf
        seen = observe(session, record)
        move = decide(record, seen, StepTimeouts(document_s=session.settings.cycle.timeout_s))
        crash_point("rotate:decided")
        if move.record != record:
            save(session, move.record)
        if move.record.step is RotationStage.VERIFY and record.step is not RotationStage.VERIFY:
            note_rotated(session, move.record)
        crash_point(f"rotate:{move.act}")
        again_at = perform(session, move, relaunch)
        if again_at is not None:
            look_at = math.inf if session.profile.hooks else time.time() + LOOK_S
            return min(again_at, move.until, look_at)
    return time.time() + RETRY_S


def _current(session: Session) -> RotationRecord | None:
    """Return the record, with what the agent has asked for; None if there is nothing to do."""
    directory = session.dir
    try:
        record, wish = rotation_files.read_record(directory), rotation_files.read_wish(directory)
    except StateError as error:
        _give_up_damaged(session, error)
        return None
    if wish is not None:
        record = _take_up(session, record, wish)
    if record is None:
        rotation_files.release(directory)
    else:
        align(directory, record)
    return record


def _take_up(
    session: Session, record: RotationRecord | None, wish: rotation_files.Handoff
) -> RotationRecord | None:
    """Return the record with the wish in it: it begins a rotation, or gives one its document.

    A wish of the next context has to wait; a wish of a context that is cleared already comes too
    late.
    """
    directory = session.dir
    if record and _is_of_next(wish, record):
        return record
    if record is None:
        context = wish.context or _read_context_under_lock(session)
        launch = agent.read_generation(directory)
        record = begin(make_nonce(8), Cause.HANDOFF, time.time(), context, wish.path, launch=launch)
        record = structs.replace(record, asked_at=wish.at)
        note(session, events.Rotation(step=RotationStep.HANDOFF, document=wish.path))
        save(session, record)
    elif record.step not in (RotationStage.RESUME, RotationStage.VERIFY):
        record = structs.replace(record, document=wish.path, kept=False)
        note(session, events.Rotation(step=RotationStep.DOCUMENT, document=wish.path))
        save(session, record)
    crash_point("rotate:taken-up")
    rotation_files.forget_wish(directory, wish)
    return record


def _is_of_next(wish: rotation_files.Handoff, record: RotationRecord) -> bool:
    """Whether the wish was made in the context that follows the one to be replaced."""
    if wish.context:
        return wish.context != record.context
    return record.step is RotationStage.VERIFY and wish.at > record.resumed_at


def _give_up_damaged(session: Session, error: StateError) -> None:
    """Drop the files, as the agent must not be held up by them, whatever has happened to them."""
    rotation_files.forget_wish(session.dir)
    rotation_files.drop(session.dir)
    text = f"could not be given a new context: {error.message}"
    why = one_line(error.message, SENTENCE_LIMIT)
    told = f"[sm] Your context was not replaced: {why}. Go on with your work."
    queue.put(session.dir, Message(id=queue.make_id(), text=told, mode=Mode.IMPORTANT))
    alerts.note(session, text, f"damaged:{time.time():.6f}")
