"""What an agent's hooks have last said of it. They write with the shell's own means."""

from __future__ import annotations

import time
from enum import StrEnum

from msgspec import Struct

from sm.errors import StateError
from sm.foreign import read_seconds
from sm.store.files import read_guarded
from sm.store.paths import SessionDir

LINE_LIMIT = 400
AGAIN_S, TRIES = 0.005, 10
"""A hook empties the file and fills it at once; whoever reads in between looks again."""

SLACK_S = 1.0
"""A clock that is kept right by small steps back puts no moment out of question."""


class State(StrEnum):
    """What the agent is at. WAITING: its turn is over, but background tasks of it still run."""

    UNKNOWN = ""
    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    WAITING = "waiting"
    DIALOG = "dialog"
    LIMITED = "limited"
    DEAD = "dead"


class AgentState(Struct, frozen=True):
    """A state since a moment (seconds since 1970; 0: nobody knows), in a context and prompt."""

    state: State = State.UNKNOWN
    since: float = 0.0
    context: str = ""
    prompt: str = ""
    active_at: float = 0.0
    """When any hook was called last."""


def read(directory: SessionDir) -> AgentState:
    """The state; UNKNOWN for an agent without hooks, or where its file is damaged."""
    active_at = _mtime(directory)
    for _ in range(TRIES):
        if found := _parse(_line(directory), active_at):
            return found
        time.sleep(AGAIN_S)
    return AgentState(active_at=active_at)


def _line(directory: SessionDir) -> str | None:
    try:
        data = read_guarded(directory.state, LINE_LIMIT)
    except StateError:
        return None
    return None if data is None else data.decode("utf-8", "replace")


def _parse(line: str | None, active_at: float) -> AgentState | None:
    """None for half a line, which will be a whole one shortly."""
    if line is None:
        return AgentState(active_at=active_at)
    if not line.endswith("\n"):
        return None
    try:
        state, since, context, prompt = line.split()
        return AgentState(State(state), _past(since), _id(context), _id(prompt), active_at)
    except ValueError:
        return AgentState(active_at=active_at)


def _past(word: str) -> float:
    """A moment that has been; 0 for one of the future, as the clock was set back since.

    Not the present: a state that is always just beginning is one whose end is always waited for,
    and whatever is told once for each moment would be told at every look.
    """
    at = read_seconds(word)
    if at is None:
        raise ValueError(word)
    return at if at <= time.time() + SLACK_S else 0.0


def _id(word: str) -> str:
    return "" if word == "-" else word


def _mtime(directory: SessionDir) -> float:
    try:
        return directory.events.lstat().st_mtime
    except OSError:
        return 0.0
