"""A session that is to go on elsewhere: its agent writes down how far it is, while there is time.

It is a rotation that is over with its document: the context ends with the session. From the end of
that turn on nothing more reaches the agent.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from msgspec import structs

from sm.base.errors import SmError, StateError
from sm.context import documents, rotation_files
from sm.context.rotation import Cause, RotationRecord, RotationStage
from sm.context.run import LOCK_S, begin_cycle
from sm.sessions import agent_process, agent_state, monitors, pause, registry, spending_hold
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.store import events, lock
from sm.store.events import RotationStep

AT_WORK = (State.BUSY, State.STARTING)


class Leaving:
    """What is done for the document, from the first look on."""

    def __init__(self, session: Session) -> None:
        """The agent was asked for nothing yet."""
        self.session = session
        self._is_asked = False

    def is_done(self) -> bool:
        """Do what is due; say whether nothing better is to come.

        If there can be no document, that is the end of the turn.
        """
        try:
            return self._look()
        except SmError:  # a file of it is damaged, or another process holds it for very long
            return not self._is_at_work()

    def _look(self) -> bool:
        session = self.session
        record = rotation_files.read_record(session.dir)
        if record is None and not self._is_asked and self._can_be_asked():
            self._is_asked = begin_cycle(session, Cause.LEAVE, None) is not None
            monitors.ensure(session)
            registry.poke(session.dir)
            return False
        if record is None or record.is_replaced:  # the document of the new context will do
            return not self._is_at_work()
        if record.cause is not Cause.LEAVE:
            self._is_asked = self._turn(record)
            return False
        return record.step is RotationStage.CLEAR

    def _can_be_asked(self) -> bool:
        session = self.session
        rests = pause.is_paused(session.dir) or spending_hold.is_set(session.dir)
        rests |= agent_state.read(session.dir).state is State.LIMITED
        return not rests and agent_process.is_reachable(session.tmux, session)

    def _is_at_work(self) -> bool:
        session = self.session
        return bool(session.profile.hooks) and agent_state.read(session.dir).state in AT_WORK

    def _turn(self, seen: RotationRecord) -> bool:
        """Have a rotation that is under way be over with its document; say whether it is so."""
        directory = self.session.dir
        with lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
            record = rotation_files.read_record(directory)
            if record is None or record.id != seen.id or record.must_go_on or record.is_replaced:
                return False
            rotation_files.save(self.session, structs.replace(record, cause=Cause.LEAVE))
        registry.poke(directory)
        return True


def keep_document(session: Session) -> str:
    """Keep the document for who goes on, whole or not; return its path, '' if there is none new.

    Raises:
        HeldError: another process has held the delivery lock for very long.

    """
    with lock.hold(session.dir.delivery_lock, timeout_s=LOCK_S), contextlib.suppress(StateError):
        record = rotation_files.read_record(session.dir)
        if record is None or record.cause is not Cause.LEAVE:
            return ""
        if not record.document and (found := documents.find_document(session, record)):
            record = structs.replace(record, document=found.path)
        if not record.document or not (kept := rotation_files.copy_document(session, record)):
            return ""
        rotation_files.note_begun(session.dir, Path(kept.document), "", kept=True)
        written = events.Rotation(step=RotationStep.DOCUMENT, document=kept.document)
        rotation_files.note(session, written)
        return kept.document
    return ""
