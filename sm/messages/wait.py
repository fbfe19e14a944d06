"""Carries out `sm wait`: until a session's turn is over, it asks something, or it has ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import StrEnum

from sm.adapters.agent.prompt import Prompt
from sm.base.clock import Deadline, is_within
from sm.messages import queue
from sm.messages.draft import find_last_accepted_at
from sm.messages.follow_up import SETTLED_S, find_turn_end, is_turn_over, read_prompt
from sm.sessions import agent, agent_state, pause, turn
from sm.sessions.address import check_living
from sm.sessions.agent_state import AgentState, State
from sm.sessions.session import AnySession, Session

LOOK_S = 0.05
"""Interval of looks, in seconds. Each reads one small file."""
SCREEN_LOOK_S = 0.5
"""Interval of looks without hooks, in seconds. Each asks tmux, which costs more."""

SURE_S = 0.5


class AwaitedEvent(StrEnum):
    """Event that can be waited for. IDLE: the turn is over and no message waits for the session.

    A turn that was cut short, and goes on by itself, is not over.
    """

    IDLE = "idle"
    END = "end"
    DIALOG = "dialog"


def await_event(session: AnySession, event: AwaitedEvent, timeout_s: float | None) -> bool | None:
    """Wait; True when the event has come, False when it cannot any more, None when time is up.

    No time counts while the session is paused: it begins again when that is over.
    """
    look, pause_s = _look(session, event)
    limit_s = math.inf if timeout_s is None else timeout_s
    deadline = Deadline(limit_s)
    while True:
        if pause.is_paused(session.dir):
            deadline = Deadline(limit_s)
        ended = session.has_ended
        if ended or look():
            return True if event is AwaitedEvent.END else not ended
        if deadline.is_over:
            return None
        time.sleep(pause_s)


def await_turn(session: AnySession, ident: str, timeout_s: float | None) -> str | None:
    """Wait for the end of the turn in which the agent got a message; return what it said then.

    None when time is up.

    Raises:
        EndedError: it has ended before.

    """
    deadline = Deadline(math.inf if timeout_s is None else timeout_s)
    while (words := find_turn_end(session, ident)) is None:
        check_living(session)
        if deadline.is_over:
            return None
        time.sleep(LOOK_S)
    return words


def _look(session: Session, event: AwaitedEvent) -> tuple[Callable[[], bool], float]:
    if event is AwaitedEvent.END:
        return (lambda: False), LOOK_S
    if session.profile.hooks:
        return (lambda: _says(session, event)), LOOK_S
    return (lambda: _shows(session, event)), SCREEN_LOOK_S


def _says(session: Session, event: AwaitedEvent) -> bool:
    now = agent_state.read(session.dir)
    is_it = now.state is State(event.value) or _is_cut_short(session, event, now)
    if not is_it:
        return False
    # An agent whose own command gives it a task is idle for a moment before that.
    return event is AwaitedEvent.DIALOG or (not is_within(SURE_S, now.since) and _is_free(session))


def _is_cut_short(session: Session, event: AwaitedEvent, now: AgentState) -> bool:
    """Whether the turn has failed, and only a person or a message begins another."""
    at_limit = event is AwaitedEvent.IDLE and now.state is State.LIMITED
    return at_limit and is_turn_over(session, now)


def find_rest(session: AnySession) -> str:
    """Say what the session rests for until it goes on by itself; '' for one that does not rest."""
    told = agent_state.read(session.dir)
    if told.state is not State.LIMITED or is_turn_over(session, told):
        return ""
    failure = turn.read(session.dir, told).failure
    return f"rests ({failure.fault}), and goes on by itself" if failure else ""


def _is_free(session: Session) -> bool:
    """Whether no message and no replacement of the context is about to begin the next turn."""
    directory = session.dir
    return queue.is_empty(directory) and not directory.hold.exists()


def _shows(session: Session, event: AwaitedEvent) -> bool:
    if read_prompt(session) is not Prompt(event.value):
        return False
    # An agent that was told something just now shows its prompt for a moment longer.
    return event is AwaitedEvent.DIALOG or (
        _is_free(session) and not is_within(SETTLED_S, _told_at(session))
    )


def _told_at(session: Session) -> float:
    """Return when the agent was last given something to do: by a message, or by its start."""
    known = agent.load(session.dir)
    return max(find_last_accepted_at(session), known.launched_at if known else 0.0)
