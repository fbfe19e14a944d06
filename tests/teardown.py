"""How a test ends the sessions that `sm` has started for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from sm.base.errors import StateError
from sm.sessions import agent_process, registry
from sm.sessions.session import Session
from sm.store import lock
from sm.store.paths import Root
from tests.helpers import wait_for


def end_sessions(root: Root) -> None:
    """End the sessions on record, each with its agent and its monitor."""
    for session in registry.list_all(root, report=lambda _: None):
        end_session(session)


def end_session(session: Session) -> None:
    """End a session, and wait for its monitor's end. The session may end by itself meanwhile."""
    with contextlib.ExitStack() as stack:
        monitor = _open(session.dir.monitor_lock)  # now: the file goes with the session
        if monitor is not None:
            stack.callback(os.close, monitor)
        try:
            with lock.hold(session.dir.lock, timeout_s=60):  # or its monitor restarts the agent
                agent_process.stop(session.tmux, session)
                registry.forget(session.root, session)
        except StateError:
            if session.dir.path.exists():
                raise
        if monitor is not None:
            wait_for(lambda: _is_free(monitor), "the monitor's end")


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _is_free(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
