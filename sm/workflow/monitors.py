"""Keeps one monitor alive for each session."""

from __future__ import annotations

import os
import sys

from sm.adapters.process import spawn
from sm.session.registry import IssueSession
from sm.shellroot import shell_root
from sm.store import lock
from sm.workflow.context import Context


def is_watched(ctx: Context, session: IssueSession) -> bool:
    """Whether a monitor holds the session's monitor lock."""
    return lock.is_held(session.dir.monitor_lock)


def ensure(ctx: Context, session: IssueSession) -> bool:
    """Start a monitor if there is none; True if one was started."""
    if is_watched(ctx, session):
        return False
    spawn(
        "bash",
        str(shell_root() / "bin" / "agent-session"),
        "monitor",
        session.project,
        str(session.issue),
        env=_environment(ctx),
        log=session.dir.monitor_log,
    )
    ctx.record("monitor", session.name, "started")
    return True


def _environment(ctx: Context) -> dict[str, str]:
    return os.environ | {
        "SM_PYTHON": sys.executable,
        "SM_CONFIG": str(ctx.config.source),
        "SM_STATE_ROOT": str(ctx.config.state_root),
    }
