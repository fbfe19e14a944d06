"""Activity of a session's agent in a word: since when, and what proves it."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from sm.adapters import procfs
from sm.sessions import agent, agent_state
from sm.sessions.agent_state import State
from sm.sessions.session import AnySession
from sm.store.files import find_mtime

START_S = 5.0
"""Seconds of silence after which an agent is known to have no hooks."""


class Evidence(StrEnum):
    """Source from which a state is read."""

    HOOK = "hook"
    SCREEN = "screen"
    PROCESS = "process"
    RECORD = "record"
    PHASE = "phase"
    RECEIPT = "receipt"
    COMMIT = "commit"
    ERROR = "error"


class Proof(Struct, frozen=True):
    """Evidence for a state. `at` is in seconds since 1970; 0 for a process, and for an error.

    `what` is the number of the process, the commit, the phase, the row of the receipt, the name of
    the file, why the turn failed or what is wrong with a file; '' for nothing.
    """

    kind: Evidence
    at: float = 0.0
    what: str = ""


class ActivityReport(Struct, frozen=True):
    """A state in a word, since when (seconds since 1970, 0: not known), and what proves it."""

    state: str
    since: float
    proof: Proof


def describe_activity(session: AnySession) -> str:
    """Say in a word what the session is doing."""
    return look(session).state


def look(session: AnySession) -> ActivityReport:
    """Say what the session does, from its files and its process alone."""
    directory = session.dir
    if ended_at := find_mtime(directory.over):
        return _make_standing(ended_at, "ended", directory.over)
    process = agent.read_process(directory)
    if process is None:
        return _make_standing(session.record.created_at, "cut short", directory.identity)
    said, runs = agent_state.read(directory), Proof(Evidence.PROCESS, what=str(process.pid))
    if not procfs.is_running(process):
        return ActivityReport("dead", said.since if said.state is State.DEAD else 0.0, runs)
    silent = said.state is State.STARTING and not said.active_at
    if said.state is State.UNKNOWN or (silent and time.time() > said.since + START_S):
        return ActivityReport("running", find_mtime(directory.agent_pid), runs)
    if silent:
        return ActivityReport(said.state, said.since, runs)
    if said.shown:
        return ActivityReport(said.state, said.since, Proof(Evidence.SCREEN, said.since))
    called_at = min(max(said.active_at, said.since), time.time())
    return ActivityReport(said.state, said.since, Proof(Evidence.HOOK, called_at))


def _make_standing(since: float, state: str, file: Path) -> ActivityReport:
    return ActivityReport(state, since, Proof(Evidence.RECORD, since, file.name))
