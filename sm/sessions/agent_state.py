"""Reads what the agent's hooks have last said of it. They write by the shell's own means."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path

from msgspec import Struct, structs

from sm.base.errors import StateError
from sm.base.foreign import read_seconds
from sm.store.files import find_mtime, read_guarded, write_atomic
from sm.store.paths import SessionDir

LINE_LIMIT = 400
AGAIN_S, TRIES = 0.005, 10
"""Seconds between two looks, and their number. A hook empties the file and then fills it, and a
reader that finds it empty looks again."""

SLACK_S = 1.0
"""Seconds: a clock that is corrected by small steps back does not make a time doubtful."""


class State(StrEnum):
    """State of the agent. WAITING: its turn is over, but its background tasks still run."""

    UNKNOWN = ""
    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    WAITING = "waiting"
    DIALOG = "dialog"
    LIMITED = "limited"
    DEAD = "dead"


class AgentState(Struct, frozen=True):
    """A state since a moment (seconds since 1970; 0 if unknown), in a context and a prompt."""

    state: State = State.UNKNOWN
    since: float = 0.0
    context: str = ""
    prompt: str = ""
    active_at: float = 0.0
    """Time of the last call of a hook."""
    shown: bool = False
    """Whether the screen alone shows the state, and no hook said it."""


def read(directory: SessionDir) -> AgentState:
    """Return the state; UNKNOWN for an agent without hooks or a damaged file."""
    active_at = find_mtime(directory.events)
    for _ in range(TRIES):
        if found := _parse(_line(directory.state), active_at):
            return _add_shown(directory, found) if found.state in OVERRULED else found
        time.sleep(AGAIN_S)
    return AgentState(active_at=active_at)


def forget_context(directory: SessionDir, context: str) -> None:
    """Forget this context if it is the known one: it is cleared, and the next is not known."""
    now = read(directory)
    if now.context == context != "":
        write_atomic(directory.state, f"{now.state} {now.since:.6f} - -\n")


OVERRULED = (State.DIALOG, State.STARTING, State.BUSY)
"""States that can end without a word from a hook."""


def overrule(directory: SessionDir, told: AgentState, shown: State, at: float = 0.0) -> None:
    """Note that it is at `shown` since `at`, or now, although the hooks last said `told`."""
    since = at or time.time()
    write_atomic(directory.shown, f"{told.state} {told.since:.6f} {shown} {since:.6f}\n")


def _add_shown(directory: SessionDir, told: AgentState) -> AgentState:
    """Return what the screen has shown since, if that was noted for this very state."""
    words = (_line(directory.shown) or "").split()
    if len(words) != 4 or words[:2] != [told.state, f"{told.since:.6f}"]:
        return told
    try:
        return structs.replace(told, state=State(words[2]), since=_read_past(words[3]), shown=True)
    except ValueError:
        return told


def _line(path: Path) -> str | None:
    try:
        data = read_guarded(path, LINE_LIMIT)
    except StateError:
        return None
    return None if data is None else data.decode("utf-8", "replace")


def _parse(line: str | None, active_at: float) -> AgentState | None:
    """Return the state of a line; None for half a line, which will soon be whole."""
    if line is None:
        return AgentState(active_at=active_at)
    if not line.endswith("\n"):
        return None
    try:
        state, since, context, prompt = line.split()
        return AgentState(State(state), _read_past(since), _id(context), _id(prompt), active_at)
    except ValueError:
        return AgentState(active_at=active_at)


def _read_past(word: str) -> float:
    """Return a time of the past; 0 for one in the future, which a clock set back leaves behind.

    It must not return the present. A state that always just begins would never be seen to end, and
    what is told once for each time would be told at every look.
    """
    at = read_seconds(word)
    if at is None:
        raise ValueError(word)
    return at if at <= time.time() + SLACK_S else 0.0


def _id(word: str) -> str:
    return "" if word == "-" else word
