"""Keeps one monitor alive for each session."""

from __future__ import annotations

import os
import sys

from sm.adapters.process import spawn
from sm.session.caller import OWN_VARIABLES
from sm.session.registry import Session
from sm.shellroot import shell_root
from sm.store import journal, lock


def is_watched(session: Session) -> bool:
    """Whether a monitor holds the session's monitor lock."""
    return lock.is_held(session.dir.monitor_lock)


def ensure(session: Session) -> bool:
    """Start a monitor if there is none; True if one was started."""
    if is_watched(session):
        return False
    spawn(
        "bash",
        str(shell_root() / "bin" / "agent-session"),
        "monitor",
        session.name,
        env=_environment(session),
        log=session.dir.monitor_log,
    )
    journal.record(session.root.journal, "monitor", session.name, "started")
    return True


def _environment(session: Session) -> dict[str, str]:
    """Ours, but for what names the session that we may have been called from."""
    ours = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    ours.pop("SM_CONFIG", None)
    return ours | {
        "SM_PYTHON": sys.executable,
        "SM_STATE_ROOT": str(session.state_root),
        **({"SM_CONFIG": str(session.config)} if session.config else {}),
    }
