"""Keeps one monitor running for each session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from sm.adapters import procfs
from sm.adapters.environment import select_lasting_environment
from sm.adapters.process import spawn
from sm.adapters.procfs import Process
from sm.sessions.session import Session
from sm.shell_root import find_shell_root
from sm.store import events, journal, lock
from sm.store.paths import Root

PROGRAM = "agent-session"
"""What is run by bash, with the words `monitor SESSION`."""


def is_watched(session: Session) -> bool:
    """Say whether a monitor holds the session's monitor lock."""
    return lock.is_held(session.dir.monitor_lock)


def find_all(root: Root) -> Iterator[tuple[str, Process]]:
    """Yield the monitors that run for this state root, with the names of their sessions.

    It looks at every process of the machine.
    """
    for process, place in procfs.find_by_variable("SM_STATE_ROOT"):
        words = procfs.read_command(process)
        is_monitor = len(words) == 4 and words[2] == "monitor"
        if is_monitor and Path(words[1]).name == PROGRAM and Path(place) == root.path:
            yield words[3], process


def ensure(session: Session) -> bool:
    """Start a monitor if there is none; say whether it was started."""
    if is_watched(session):
        return False
    spawn(
        "bash",
        str(find_shell_root() / "bin" / PROGRAM),
        "monitor",
        session.name,
        env=_environment(session),
        log=session.dir.monitor_log,
    )
    journal.record(session.root.journal, events.Monitor(session=session.name, state="started"))
    return True


def _environment(session: Session) -> dict[str, str]:
    """Return what its reactors need, and what the agents that they start may see."""
    ours = select_lasting_environment(session.kept_variables)
    ours.pop("SM_CONFIG", None)
    return ours | {
        "SM_PYTHON": sys.executable,
        "SM_STATE_ROOT": str(session.record.state_root),
        **({"SM_CONFIG": str(session.record.config)} if session.record.config else {}),
    }
