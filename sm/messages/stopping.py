"""Stops the turn under way: for a pause, and for a session that may spend no more."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from sm.adapters.agent.prompt import Prompt
from sm.adapters.tmux import MissingPaneError, NoServerError
from sm.base.refusal import Refusal
from sm.messages import interrupt
from sm.messages.observe import look
from sm.messages.queue import Message
from sm.sessions import agent as agents
from sm.sessions.session import Session
from sm.sessions.window import is_compacting
from sm.store import lock

DELIVERY_S = 10.0
"""So long a message that is just being typed may take."""


class Stop(StrEnum):
    """What came of it."""

    STOPPED = "stopped"
    AT_REST = "not at work"
    NO_KEY = "its agent CLI has no key that interrupts"
    NO_END = "its turn does not end"


def _nothing() -> None:
    """Nobody has to note anything."""


def stop_turn(
    session: Session,
    by: Message,
    find_people: Callable[[], Refusal | None],
    note: Callable[[], None] = _nothing,
) -> Stop | Refusal:
    """Interrupt the agent's turn, if it is at work; a refusal says why not now.

    `by` is what it is interrupted for, `find_people` says whether people keep it from that, and
    `note` is called just before the key is pressed.

    Raises:
        HeldError: a message has been typed all the time.
        TemporaryError: tmux did not answer.

    """
    known = agents.load(session.dir)
    if known is None or not session.profile.terminal:
        return Stop.AT_REST
    with lock.hold(session.dir.delivery_lock, timeout_s=DELIVERY_S):
        try:
            pane, screen, _ = look(session, known.pane_id)
            if screen.prompt is not Prompt.BUSY:
                return Stop.AT_REST
            if not session.profile.interrupt_key:
                return Stop.NO_KEY
            if is_compacting(session.dir):
                return Refusal.COMPACTING
            if interrupt.is_protected(session):
                return Refusal.PROTECTED
            if refusal := find_people():
                return refusal
            note()
            stopped = interrupt.interrupt(session, pane, screen, by)
            ends = stopped is not None or look(session, pane.id).screen.prompt is not Prompt.BUSY
        except (NoServerError, MissingPaneError):
            return Stop.AT_REST
    return Stop.STOPPED if ends else Stop.NO_END
