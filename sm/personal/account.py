"""Handles a fault of the account of a session without an issue, which has no matrix.

It rests as all sessions of its account do, and is told to go on when it is its turn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from sm.messages import alerts, queue
from sm.messages.ids import derive_id
from sm.messages.presence import find_obstacle
from sm.messages.queue import Message, Mode
from sm.sessions import account_faults, agent, agent_state, turn
from sm.sessions.account_fault import AccountCourse
from sm.sessions.launch import read_first_prompt
from sm.sessions.presence_rule import Disturbance
from sm.sessions.session import AdHocSession

GO_ON = (
    "[sm] Your last turn was cut short, as your account had no answer from its API. Go on where "
    "you were."
)
RETRY_S = 15.0

Restart = Callable[[str, str, int], None]
"""Starts the agent again with a prompt, its own session to resume, and a generation."""


def tend(session: AdHocSession, restart: Restart) -> float:
    """Tend to the fault; return when to look again, seconds since 1970."""
    again_at = alerts.tend_account(session, 0.0)
    told = agent_state.read(session.dir)
    failure = turn.read(session.dir, told).failure if session.profile.hooks else None
    standing = account_faults.read_standing(session, failure, gone=False)
    if (
        standing is None
        or failure is None
        or standing.way in (AccountCourse.REST, AccountCourse.ASK)
    ):
        return again_at
    if standing.way is AccountCourse.RESTART and find_obstacle(session, Disturbance.RESTART):
        return time.time() + RETRY_S
    if not account_faults.take_turn(session):
        return time.time() + RETRY_S
    if standing.way is AccountCourse.GO_ON:
        ident = derive_id(f"{session.name}@{session.record.created_at}:account:{failure.at:.6f}")
        queue.put(session.dir, Message(id=ident, text=GO_ON, mode=Mode.IMPORTANT))
    else:
        known, prompt = agent.load(session.dir), GO_ON
        if failure.at_menu:  # it has not had its first prompt yet
            prompt = read_first_prompt(session.dir)
        restart(prompt, told.context, known.generation + 1 if known else 1)
    return math.inf
