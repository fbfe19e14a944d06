"""Keeps one monitor running for each session."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sm.adapters import procfs
from sm.adapters.environment import select_lasting_environment
from sm.adapters.process import spawn
from sm.adapters.procfs import Process
from sm.sessions.caller import VARIABLE
from sm.sessions.session import Session
from sm.shell_root import find_shell_root
from sm.store import events, journal, lock
from sm.store.files import discard, read_guarded, write_atomic
from sm.store.paths import Root

PROGRAM = "agent-session"
"""Program that bash runs, with the words `monitor SESSION`."""
SECRET = re.compile(r"(?i:https?|all)_(?i:proxy)|GIT_CONFIG_(?:COUNT|KEY|VALUE)|GIT_.*PASS")
"""Variables that may have a secret in them, beside those that the configuration names."""


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
    """Start a monitor if there is none; say whether it was started.

    One that an agent's hook has started, and that lacks secrets, is replaced by a full one.
    """
    if is_watched(session):
        if not stands_in(session) or is_in_agent():
            return False
        discard(session.dir.monitor_lock)  # it ends within a second
    spawn(
        "bash",
        str(find_shell_root() / "bin" / PROGRAM),
        "monitor",
        session.name,
        env=_recall_environment(session) if is_in_agent() else _keep_environment(session),
        log=session.dir.monitor_log,
    )
    journal.record(session.root.journal, events.Monitor(session=session.name, state="started"))
    return True


def is_in_agent() -> bool:
    """Say whether an agent has called us, or a hook of its client: its environment is not ours."""
    return bool(os.environ.get(VARIABLE))


def stands_in(session: Session) -> bool:
    """Say whether the monitor was started from within an agent, and lacks what others would have.

    Its passes look after agent and budget, but may not reach the forge.
    """
    return session.dir.monitor_stands_in.exists()


def _keep_environment(session: Session) -> dict[str, str]:
    """Return what its reactors need, and what the agents that they start may see.

    It is kept for a monitor that is started from within an agent; secrets are not.
    """
    discard(session.dir.monitor_stands_in)
    passed = session.kept_variables
    found = select_lasting_environment(passed)
    entries = [
        name if name in passed or SECRET.match(name) else f"{name}={value}"
        for name, value in found.items()
    ]
    write_atomic(session.dir.monitor_env, "".join(f"{one}\0" for one in entries))
    return _add_ours(session, found)


def _recall_environment(session: Session) -> dict[str, str]:
    """Return the environment that was kept, with what of the rest the agent has."""
    kept = os.fsdecode(read_guarded(session.dir.monitor_env) or b"").split("\0")
    found = dict(one.split("=", 1) for one in kept if "=" in one)
    left_out = [one for one in kept if one and "=" not in one]
    found |= {name: os.environ[name] for name in left_out if name in os.environ}
    if not all(name in found for name in left_out):
        write_atomic(session.dir.monitor_stands_in, "")
    return _add_ours(session, found or select_lasting_environment(session.kept_variables))


def _add_ours(session: Session, found: dict[str, str]) -> dict[str, str]:
    found.pop("SM_CONFIG", None)
    return found | {
        "SM_PYTHON": sys.executable,
        "SM_STATE_ROOT": str(session.record.state_root),
        **({"SM_CONFIG": str(session.record.config)} if session.record.config else {}),
    }
