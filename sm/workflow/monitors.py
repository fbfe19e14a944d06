"""Keeps one monitor alive for each session."""

from __future__ import annotations

import contextlib
import sys

from sm.adapters.process import spawn
from sm.adapters.surroundings import lasting_environment
from sm.errors import SmError
from sm.session.registry import IssueSession, Session
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
    """What its reactors need, and what the agents that they start may see."""
    ours = lasting_environment(_passed(session))
    ours.pop("SM_CONFIG", None)
    return ours | {
        "SM_PYTHON": sys.executable,
        "SM_STATE_ROOT": str(session.state_root),
        **({"SM_CONFIG": str(session.config)} if session.config else {}),
    }


def _passed(session: Session) -> tuple[str, ...]:
    """The variables that the next agent of an issue is given; others keep those of their first."""
    if isinstance(session, IssueSession):
        from sm.workflow import host

        with contextlib.suppress(SmError):  # its reactor says what is wrong with it
            return host.context_of(session).project.agent.pass_env
    return ()
