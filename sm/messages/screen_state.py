"""Corrects an agent's state by its screen, where no hook tells of a change.

No hook tells that a dialog is over, that a first prompt never came, or that a client begins at its
menu for a login.

A dialog that a person dismisses, and one whose tool is refused, calls no hook. So the screen
decides. What it shows is noted beside the state that the hooks wrote, and holds until they write
another: two writers of one file would take each other's word away.

A turn of Codex that has failed calls no hook, either, nor does a client that begins at its menu for
a login, and so has begun no turn. Both failures are noted as Claude Code's hook would note them.

The monitor is called as soon as a terminal shows something new, while that decides. tmux appends
what a terminal shows to its log, so a newer log is all that the monitor has to look for, by
builtins and once a second. The log knows nothing of copy mode: tmux itself says when a person
leaves it.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from typing import NamedTuple

from sm.adapters.agent.codex_rollout import FailedTurn, read_failed_turn
from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen
from sm.adapters.tmux import TmuxError
from sm.base.errors import TemporaryError
from sm.base.refusal import Refusal
from sm.messages import observe
from sm.messages.observe import Sight
from sm.sessions import agent, agent_state, hook_events, turn, window
from sm.sessions.agent_state import AgentState, State
from sm.sessions.failure import AT_MENU, classify_error
from sm.sessions.session import Session
from sm.sessions.signs import STARTING_S
from sm.store.files import append_line, discard, read_guarded, write_atomic

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
    state = note_failed_turn(session, agent_state.read(session.dir))
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
        return Corrected(note_menu(session, state, screen.login), now + LOOK_S)
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
    return Corrected(agent_state.read(session.dir))  # a hook may have said something since


ON_SCREEN = frozenset(
    {
        Refusal.DIALOG,
        Refusal.NO_PROMPT,
        Refusal.DRAFT,
        Refusal.CHANGED,
        Refusal.SHELL,
        Refusal.STARTING,
    }
)
"""Refusals that are over as soon as the screen shows it."""


def watch(session: Session, told: AgentState, refusal: Refusal | None) -> bool:
    """Have the next look called for by the obstacle: `refusal` is why a message waits.

    `told` is what the agent's hooks have said by now.

    Returns whether it is copy mode; tmux is certain to tell when that ends.

    Raises:
        TmuxError, TmuxBusyError: tmux could not be asked.

    """
    _watch_screen(session, told, refusal)
    known = agent.load(session.dir) if refusal is Refusal.MODE else None
    return known is not None and session.tmux.call_on_mode(known.pane_id, session.dir.wake)


def _watch_screen(session: Session, told: AgentState, refusal: Refusal | None) -> None:
    directory = session.dir
    decides = refusal in ON_SCREEN or is_behind(session, told, refusal)
    if not decides and not is_unsure(session, told):
        discard(directory.screen)
        return
    log = f"{session.terminal_log}\n".encode()
    if read_guarded(directory.screen) != log:
        write_atomic(directory.screen, log)


FAILED = "StopFailure"


def note_failed_turn(session: Session, told: AgentState) -> AgentState:
    """Return the agent's state, by `told`, once it is noted that its turn has failed."""
    if session.profile.hooks != "codex" or told.state is not State.BUSY:
        return told
    rollout = window.read(session.dir).conversation
    failed = read_failed_turn(rollout, told.prompt) if rollout else None
    if failed is None:
        return told
    _write_failure(session, told, failed)
    return agent_state.read(session.dir)


def note_menu(session: Session, told: AgentState, row: str) -> AgentState:
    """Return the agent's state, once it is noted that its client begins at its menu for a login.

    `row` is what the menu shows.
    """
    _write_failure(session, told, FailedTurn(told.prompt, AT_MENU, row, time.time()))
    return agent_state.read(session.dir)


def _write_failure(session: Session, told: AgentState, failed: FailedTurn) -> None:
    """Write the failure, then the state: as long as that is missing, all of it is done again."""
    directory = session.dir
    said = {
        "session_id": told.context,
        "turn_id": told.prompt,
        "hook_event_name": FAILED,
        "error": failed.error,
        "last_assistant_message": failed.message,
    }
    write_atomic(directory.failure, json.dumps(said))
    if f"{hook_events.find_last(directory, FAILED):.6f}" != f"{failed.at:.6f}":
        line = f"{failed.at:.6f} {FAILED} {told.context or '-'} {failed.error}"
        append_line(directory.events, line.encode())
    rests = classify_error(failed.error).is_of_account
    agent_state.overrule(directory, told, State.LIMITED if rests else State.IDLE, failed.at)
