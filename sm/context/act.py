"""Carries out the acts of a rotation. Each may be repeated; the caller holds the delivery lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from sm.adapters.agent.prompt import Prompt
from sm.base.errors import SmError
from sm.base.refusal import Refusal, Status, find_refusal
from sm.channels import people
from sm.context import documents, finish, rotation_files, rotation_texts
from sm.context.clear import clear
from sm.context.rotation import (
    Cause,
    MessageKey,
    MessageKind,
    Move,
    RotationAct,
    RotationRecord,
    RotationStage,
)
from sm.context.rotation_files import copy_document, note, note_rotated, save, withdraw
from sm.context.rotation_texts import Form
from sm.messages import alerts, delivery, interrupt, queue
from sm.messages.observe import look
from sm.messages.presence import find_obstacle
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent, agent_state, monitors, window
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import Session
from sm.store import events, journal
from sm.store.events import RotationStep
from sm.store.failpoint import crash_point
from sm.store.files import discard

Relaunch = Callable[[int], None]
"""Ends the agent and starts it again as the launch of this number, unless that is done already."""

RETRY_S = 1.0
DEEDS = {
    RotationAct.INTERRUPT: Disturbance.INTERRUPT,
    RotationAct.CLEAR: Disturbance.CLEAR,
    RotationAct.RELAUNCH: Disturbance.RESTART,
}
"""Acts that people at the terminal would feel."""
CLEARED = {
    Status.ACCEPTED: "confirmed",
    Status.TYPED: "taken",
    Status.INDETERMINATE: "unconfirmed",
}
"""Outcomes of a clear, as the journal words them."""


def perform(session: Session, move: Move, relaunch: Relaunch | None = None) -> float | None:
    """Do what was decided; return when to look again, seconds since 1970, None for at once.

    `relaunch` is None where the caller may not start agents: then the monitor does it.

    Raises:
        TemporaryError: tmux did not answer; it is tried again.

    """
    if refusal := _find_people(session, move):
        return _blocked(session, move.record, refusal)
    if move.act is RotationAct.RELAUNCH:
        return _relaunch(session, move, relaunch)
    return _ACTS[move.act](session, move)


def _find_people(session: Session, move: Move) -> Refusal | None:
    """Find why people at the terminal keep this from being done.

    A person who asks for it by a command knows what is there. But an agent that is started again
    instead loses a draft, which its own command puts aside.
    """
    deed = DEEDS.get(move.act)
    by_command = move.record.cause is Cause.COMMAND and deed is not Disturbance.RESTART
    return find_obstacle(session, deed) if deed and not by_command else None


def _wait(_session: Session, move: Move) -> float | None:
    return move.until


def _tell(session: Session, move: Move) -> float | None:
    """Queue the message of the step, once, and hand it over; the caller holds the lock."""
    record, key = move.record, move.record.key
    directory = session.dir
    assert key is not None, "only a step with a message tells"
    opens = record.step is RotationStage.RESUME
    if opens:
        record = copy_document(session, record) or record
        note_rotated(session, record)
        _withdraw_others(session, record.make_message_id(key))
    new = Message(
        id=record.make_message_id(key),
        text=_text(session, record, key),
        mode=Mode.SEQUENTIAL if opens else Mode.STEER,
        opens=opens,
    )
    if opens and record.cleared and queue.find_place(directory, new.id) is None:
        agent_state.forget_context(directory, record.context)
    if queue.put(directory, new):
        said = new.text.splitlines()[0]
        asked = events.Rotation(step=RotationStep.ASKED, message=str(key), text=said)
        note(session, asked)
    crash_point("rotate:queued")
    delivery.drain_held(session)
    return None if queue.find_accepted_at(directory, new.id) else time.time() + RETRY_S


def _withdraw_others(session: Session, ident: str) -> None:
    """Take back a message that was to open an earlier context: an interruption gave it back."""
    directory = session.dir
    for waiting in queue.list_messages(directory, MessageFolder.WAITING):
        if waiting.opens and waiting.id != ident:
            queue.withdraw(directory, waiting.id)


def _text(session: Session, record: RotationRecord, key: MessageKey) -> str:
    cycle, found = session.settings.cycle, None
    if record.step is RotationStage.DOCUMENT:
        found = documents.find_document(session, record)
    text = rotation_texts.write_message(
        record,
        key,
        folder=record.folder,
        form=Form(cycle.sections, cycle.header),
        missing=Form(found.missing, found.lines) if found else Form(),
        path=_path(session, record) or (found.path if found else ""),
        resumed=cycle.resumed,
    )
    return _opening(session, record, text) if record.step is RotationStage.RESUME else text


def _opening(session: Session, record: RotationRecord, text: str) -> str:
    """Return the first prompt of the new context: its last line asks for the task."""
    more = repeat_protocol(session)
    own, resumed = record.cause is Cause.HANDOFF, session.settings.cycle.resumed
    naming = "" if own else rotation_texts.ask_for_task(resumed)
    between = "\n\n" if more else "\n"
    return between.join(part for part in (text, more, naming) if part)


def _path(session: Session, record: RotationRecord) -> str:
    """Return the path of the document; of our copy, if the document itself is gone."""
    if record.kept and not rotation_files.is_readable(Path(record.document)):
        return str(session.dir.document)
    return record.document


def _interrupt(session: Session, move: Move) -> float | None:
    record = move.record
    known = agent.load(session.dir)
    if known is None or window.is_compacting(session.dir):
        return time.time() + RETRY_S
    pane, screen, _ = look(session, known.pane_id)
    if screen.prompt is Prompt.BUSY and session.profile.interrupt_key:
        by = Message(id=record.make_message_id(MessageKey(MessageKind.STOP)), text="")
        screen = interrupt.interrupt(session, pane, screen, by) or screen
        # The conversation about it goes with the context.
        discard(session.dir.interrupted)
    if screen.prompt is not Prompt.IDLE:
        return time.time() + RETRY_S
    note(session, events.Rotation(step=RotationStep.INTERRUPTED))
    save(session, structs.replace(record, interrupted=True))
    return None


def _clear(session: Session, move: Move) -> float | None:
    record = copy_document(session, move.record)
    if record is None:
        return None  # it has just gone, which the next decision sees
    crash_point("rotate:kept")
    found = clear(session, f"{record.id}.clear{record.clears}", record.context)
    crash_point("rotate:cleared")
    if found.refusal:
        return _blocked(session, record, found.refusal)
    taken = found.status is Status.TYPED
    if taken or record.obstacle:
        save(session, structs.replace(record, cleared=taken, obstacle="", since=time.time()))
    result = CLEARED[found.status]
    cleared = events.Rotation(step=RotationStep.CLEARED, attempt=record.clears, result=result)
    note(session, cleared)
    return None


def _blocked(session: Session, record: RotationRecord, refusal: Refusal) -> float:
    if find_refusal(record.obstacle) is not refusal:
        since = record.since if record.obstacle else time.time()
        save(session, structs.replace(record, obstacle=refusal.value, since=since))
        blocked = events.Rotation(step=RotationStep.BLOCKED, reason=refusal.sentence)
        note(session, blocked)
    return time.time() + RETRY_S


def _relaunch(session: Session, move: Move, relaunch: Relaunch | None) -> float | None:
    record = move.record
    if relaunch is None:
        monitors.ensure(session)
        return time.time() + RETRY_S
    if not record.generation:
        known = agent.load(session.dir)
        number = known.generation + 1 if known else 1
        record = structs.replace(record, generation=number, since=time.time())
        save(session, record)
        note(session, events.Rotation(step=RotationStep.RELAUNCHED))
    crash_point("rotate:relaunching")
    with alerts.telling_of_sandbox(session):
        relaunch(record.generation)
    return time.time() + RETRY_S


def _report(session: Session, move: Move) -> float | None:
    text = f"cannot be given a new context yet: {move.reason}"
    key = f"{move.record.id}:{move.record.step}"
    alerts.note(session, text, key)
    return None


def _finish(session: Session, move: Move) -> float | None:
    note_rotated(session, move.record)
    _end(session, move.record, lambda: finish.finish(session, move.record))
    return None


def _give_up(session: Session, move: Move) -> float | None:
    _end(session, move.record, lambda: finish.give_up(session, move.record, move.reason))
    return None


def _end(session: Session, record: RotationRecord, tell: Callable[[], None]) -> None:
    """Tell the outcome, then forget the rotation; a word that fails must not hold the agent up."""
    withdraw(session.dir, record)
    try:
        tell()
    except SmError as error:
        problem = events.Problem(session=session.name, text=error.message)
        journal.record(session.root.journal, problem)
    crash_point("rotate:told")
    rotation_files.drop(session.dir)


_ACTS: dict[RotationAct, Callable[[Session, Move], float | None]] = {
    RotationAct.WAIT: _wait,
    RotationAct.TELL: _tell,
    RotationAct.INTERRUPT: _interrupt,
    RotationAct.CLEAR: _clear,
    RotationAct.REPORT: _report,
    RotationAct.FINISH: _finish,
    RotationAct.GIVE_UP: _give_up,
}


def repeat_protocol(session: Session) -> str:
    """Return the words of the protocol that a new context of an issue's agent needs again; or ''.

    A system prompt outlives a clear and a new start. A message does not.
    """
    if not session.issue:
        return ""
    signal = "" if session.profile.system_prompt else session.explain_protocol()
    channels = people.introduce(session, people.open_channels(session))
    return "\n\n".join(part for part in (signal, *channels) if part)
