"""Notes that a turn has failed where no hook tells, as Claude Code's hook would note it.

This concerns a turn of Codex that has failed, and a client that begins at its menu for a login, and
so has begun no turn.
"""

from __future__ import annotations

import json
import time

from sm.adapters.agent.codex_turns import FailedTurn, read_failed_turn
from sm.sessions import agent_state, hook_events, window
from sm.sessions.agent_state import AgentState, State
from sm.sessions.failure import AT_MENU, classify_error
from sm.sessions.session import Session
from sm.store.files import append_line, write_atomic

FAILED = "StopFailure"


def note(session: Session, told: AgentState) -> AgentState:
    """Return the agent's state, by `told`, once it is noted that its turn has failed."""
    if session.profile.hooks != "codex" or told.state is not State.BUSY:
        return told
    rollout = window.read(session.dir).conversation
    failed = read_failed_turn(rollout, told.prompt) if rollout else None
    if failed is None:
        return told
    _write(session, told, failed)
    return agent_state.read(session.dir)


def note_menu(session: Session, told: AgentState, row: str) -> AgentState:
    """Return the agent's state, once it is noted that its client begins at its menu for a login.

    `row` is what the menu shows.
    """
    _write(session, told, FailedTurn(told.prompt, AT_MENU, row, time.time()))
    return agent_state.read(session.dir)


def _write(session: Session, told: AgentState, failed: FailedTurn) -> None:
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
