"""Corrects an agent's state by its screen, where no hook tells of a change.

No hook tells that a dialog is over, that a first prompt never came, or that a client begins at its
menu for a login.

A dialog that a person dismisses, and one whose tool is refused, calls no hook. So the screen
decides. What it shows is noted beside the state that the hooks wrote, and holds until they write
another: two writers of one file would take each other's word away.
"""

from __future__ import annotations

import contextlib
import math
import time
from typing import NamedTuple

from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen
from sm.adapters.tmux import TmuxError
from sm.base.errors import TemporaryError
from sm.base.refusal import Refusal
from sm.messages import failed_turn, observe
from sm.messages.observe import Sight
from sm.sessions import agent, agent_state, turn
from sm.sessions.agent_state import AgentState, State
from sm.sessions.session import Session
from sm.sessions.signs import STARTING_S
from sm.store.files import discard

LOOK_S = 1.0
MENU_S = 30.0
"""Interval of looks whether a person has left the menu for a login, in seconds."""
OPENS_S = 15.0
"""Time that the first prompt may take after the hook of the start, in seconds."""
DRAWN_S = {State.DIALOG: observe.DRAWN_S, State.STARTING: OPENS_S}
"""Time after its hook for which a state need not be on the screen yet, in seconds."""
UNDER_WAY = (State.STARTING, State.BUSY, State.DIALOG)
"""States after which a hook has something left to tell."""
SHOWN = {Prompt.IDLE: State.IDLE, Prompt.BUSY: State.BUSY}


class Corrected(NamedTuple):
    """State of an agent, for the pass that asked; `again_at`: when to look again.

    The screen may decide later. inf: nobody has to look for that without being called.
    """

    told: AgentState
    again_at: float = math.inf


def correct(session: Session) -> Corrected:
    """Return what the agent has said of itself, once what its screen knows better is noted.

    While a dialog is open, the monitor calls whenever the terminal shows anything new.
    """
    state = failed_turn.note(session, agent_state.read(session.dir))
    if session.profile.hooks and session.profile.login:
        if is_at_menu(session, state):
            return _look_for_end_of_menu(session, state)
        if state.state is State.STARTING and not state.context:
            return _look_for_menu(session, state)
    if not is_unsure(session, state):
        return Corrected(state)
    if time.time() < (due_at := state.since + DRAWN_S[state.state]):
        return Corrected(state, due_at)
    try:
        seen = _look(session)
    except (TmuxError, TemporaryError):
        return Corrected(state, time.time() + LOOK_S)
    return _note(session, state, seen) if seen else Corrected(state)


def _look(session: Session) -> Sight | None:
    known = agent.load(session.dir)
    return observe.look(session, known.pane_id) if known else None


def is_at_menu(session: Session, state: AgentState) -> bool:
    """Whether the state notes that the agent's client begins at its menu for a login."""
    if not (state.shown and state.state is State.LIMITED):
        return False
    failure = turn.read(session.dir, state).failure
    return failure is not None and failure.at_menu


def _look_for_menu(session: Session, state: AgentState) -> Corrected:
    screen, now = _read_screen(session), time.time()
    if screen and screen.login and not agent_state.read(session.dir).context:
        return Corrected(failed_turn.note_menu(session, state, screen.login), now + LOOK_S)
    due_at = (state.since + after_s for after_s in STARTING_S)
    return Corrected(state, next((at for at in due_at if at > now), math.inf))


def _look_for_end_of_menu(session: Session, state: AgentState) -> Corrected:
    screen = _read_screen(session)
    if screen is None or screen.login or screen.prompt is Prompt.NONE:
        return Corrected(state, time.time() + MENU_S)
    discard(session.dir.shown)
    return Corrected(agent_state.read(session.dir))


def _read_screen(session: Session) -> Screen | None:
    with contextlib.suppress(TmuxError, TemporaryError):
        return seen.screen if (seen := _look(session)) else None
    return None


def is_unsure(session: Session, state: AgentState) -> bool:
    """Whether the state may be over without a hook that says so."""
    if not session.profile.hooks:
        return False
    return state.state is State.DIALOG or (state.state is State.STARTING and bool(state.context))


def is_behind(session: Session, told: AgentState, refusal: Refusal | None) -> bool:
    """Whether the screen lags: it still shows a turn that hooks ended, or not yet one that began.

    A machine under load draws seconds after the hook. No hook tells when that is done.
    """
    if refusal is not Refusal.BUSY or not session.profile.hooks:
        return False
    return told.state not in UNDER_WAY


def _note(session: Session, state: AgentState, seen: Sight) -> Corrected:
    shown, in_colour = SHOWN.get(seen.screen.prompt), bool(session.profile.idle_colour)
    if shown is None:
        return Corrected(seen.told)
    if shown is State.IDLE and not in_colour and observe.draws(session, seen.pane):
        return Corrected(seen.told, time.time() + LOOK_S)  # it looks idle in mid-text, too
    agent_state.overrule(session.dir, state, shown)
    return Corrected(_read_overruled(session))


def _read_overruled(session: Session) -> AgentState:
    """Return what holds now: what the screen shows, unless a hook has said something since."""
    return agent_state.read(session.dir)
