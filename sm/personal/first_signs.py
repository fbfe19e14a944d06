"""Watches the first seconds of an agent. If it ends in them, it never began."""

from __future__ import annotations

import time

from sm.base.clock import Deadline
from sm.base.text import one_line
from sm.sessions import agent, agent_process, agent_state, terminal
from sm.sessions.session import Session

SETTLE_S = 2.0
"""Time after which a living agent has begun, in seconds, whatever it shows: many have no hooks."""

LOOK_S, SCREEN_S = 0.02, 0.2

WORDS_S = 0.5
"""Time after an agent's end in which tmux writes its last words, in seconds, at most."""


def await_first_signs(session: Session) -> None:
    """Wait until the agent has certainly begun: by a hook, its input line, or time.

    Raises:
        AgentError: the agent has ended before; its last line says why.

    """
    begun, until, screen_at = time.time(), time.monotonic() + SETTLE_S, 0.0
    while (now := time.monotonic()) < until:
        if not agent.is_alive(session.dir):
            raise agent_process.AgentError(f"its agent ended at once: {read_last_line(session)}")
        if agent_state.read(session.dir).active_at > begun - SETTLE_S:
            return
        if not session.profile.hooks and now > screen_at + SCREEN_S:
            screen_at = now
            if session.profile.glyph in terminal.capture(session):
                return
        time.sleep(LOOK_S)


def read_last_line(session: Session) -> str:
    """Return the last words of the agent's terminal in quotes, or that it said nothing."""
    line, deadline = "", Deadline(WORDS_S)
    while not line and not deadline.is_over:
        time.sleep(LOOK_S)
        line = one_line(terminal.read_tail(session.terminal_log, 1), 200).strip()
    return f'"{line}"' if line else "it said nothing"
