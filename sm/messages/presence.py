"""Observes whether people are at a session's terminal, and asks `sm.sessions.presence_rule`.

Every path that would end, clear, restart, interrupt or remind a session asks here first, at the
moment at which it would act. No other pass pays for it.
"""

from __future__ import annotations

import time

from sm.adapters.agent.screen import Screen
from sm.adapters.tmux import MissingPaneError, NoServerError
from sm.adapters.viewers import look_at_use
from sm.base.refusal import Refusal
from sm.messages import queue
from sm.messages.draft import begins_like, read_last_typed
from sm.messages.interrupt import holds_rest
from sm.messages.observe import look
from sm.messages.queue import MessageFolder
from sm.sessions import agent
from sm.sessions.presence_rule import NOBODY, Disturbance, Hands, find_hindrance
from sm.sessions.session import Session


def observe_hands(session: Session) -> Hands:
    """Return what is known of people at the session's terminal; nobody if the terminal is gone.

    Raises:
        TmuxBusyError: tmux did not answer.

    """
    pane_id = _find_pane(session)
    if not pane_id:
        return NOBODY
    try:
        pane, screen, _ = look(session, pane_id)
        use = look_at_use(session.tmux, pane)
    except (MissingPaneError, NoServerError):
        return NOBODY
    if pane.session != session.name:
        return NOBODY
    draft = (bool(screen.draft) or screen.stashed) and not _is_ours(session, screen)
    return Hands(draft, use.typed_at, use.attached)


def find_obstacle(session: Session, deed: Disturbance) -> Refusal | None:
    """Find why that must not be done to the session now; None if it may.

    Raises:
        TmuxBusyError: tmux did not answer.

    """
    return find_hindrance(deed, observe_hands(session), time.time())


def _find_pane(session: Session) -> str:
    """Find the agent's pane, by its record, else by its session's name: the record may be lost."""
    if known := agent.load(session.dir):
        return known.pane_id
    pane = session.tmux.pane(session.name)
    return pane.id if pane else ""


def _is_ours(session: Session, screen: Screen) -> bool:
    """Whether the draft is a message that was typed, a rest of one, or the command that clears."""
    if not screen.draft or screen.draft == session.profile.clear:
        return bool(screen.draft)
    typed = read_last_typed(session.dir)
    if typed is None:
        return False
    under_way = queue.find_place(session.dir, typed.id) in (
        MessageFolder.WAITING,
        MessageFolder.HANDED,
    )
    return (under_way and begins_like(screen, typed)) or holds_rest(session, screen)
