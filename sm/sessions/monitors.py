"""Keeps one monitor running for each session."""

from __future__ import annotations

import sys

from sm.adapters.environment import select_lasting_environment
from sm.adapters.process import spawn
from sm.sessions.session import Session
from sm.shell_root import find_shell_root
from sm.store import events, journal, lock


def is_watched(session: Session) -> bool:
    """Say whether a monitor holds the session's monitor lock."""
    return lock.is_held(session.dir.monitor_lock)


def ensure(session: Session) -> bool:
    """Start a monitor if there is none; say whether it was started."""
    if is_watched(session):
        return False
    spawn(
        "bash",
        str(find_shell_root() / "bin" / "agent-session"),
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
