"""Notes that a turn of Codex has failed, as the hook does that Claude Code calls for it."""

from __future__ import annotations

import json

from sm.adapters.agent.codex_turns import FailedTurn, read_failed_turn
from sm.sessions import agent_state, hook_events, window
from sm.sessions.agent_state import AgentState, State
from sm.sessions.failure import classify_error
from sm.sessions.session import Session
from sm.store.files import append_line, write_atomic

FAILED = "StopFailure"


def note(session: Session, told: AgentState) -> AgentState:
    """Return what the agent is at, by `told`, once it is noted that its turn has failed."""
    if session.profile.hooks != "codex" or told.state is not State.BUSY:
        return told
    rollout = window.read(session.dir).conversation
    failed = read_failed_turn(rollout, told.prompt) if rollout else None
    if failed is None:
        return told
    _write(session, told, failed)
    return agent_state.read(session.dir)


def _write(session: Session, told: AgentState, failed: FailedTurn) -> None:
    """The state comes last: as long as it is not there, all of it is done again."""
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
