"""What the launcher reads: the agent's environment and its command, each entry ended by a NUL."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping

from sm.adapters.tmux import Tmux, plain_environment
from sm.config.schema import Project
from sm.errors import UsageError
from sm.session.registry import Session
from sm.shellroot import shell_root
from sm.store.files import write_atomic
from sm.store.paths import SessionDir
from sm.text import harmless, normalise

PROMPT_LIMIT = 120_000
"""Bytes; Linux takes 128 KB in one argument."""

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def write_launch_files(
    tmux: Tmux, session: Session, project: Project, prompt: str, extra_env: Mapping[str, str]
) -> None:
    """Write what the launcher will read, and clear what the one before it has left.

    Raises:
        UsageError: the command or the environment that is configured cannot be used.

    """
    directory = session.dir
    for stale in (directory.agent_pid, directory.launch_error):
        stale.unlink(missing_ok=True)
    environment = agent_environment(tmux, session, project, extra_env)
    entries = [f"{name}={value}" for name, value in environment.items()]
    write_atomic(directory.launch_env, _entries(entries, "environment"))
    write_atomic(directory.launch_argv, _entries(_command(directory, project, prompt), "command"))


def _entries(values: list[str], what: str) -> bytes:
    data = [os.fsencode(value) for value in values]
    if any(b"\0" in value for value in data):
        raise UsageError(f"the agent's {what} holds a NUL character: remove it")
    return b"".join(value + b"\0" for value in data)


def _command(directory: SessionDir, project: Project, prompt: str) -> list[str]:
    try:
        command = shlex.split(project.agent.command)
    except ValueError as error:
        raise UsageError(
            f"cannot read agent.command '{project.agent.command}': {str(error).lower()}"
        ) from error
    if not command:
        raise UsageError(f"agent.command of project '{project.name}' is empty: set it")
    text = normalise(prompt)  # as if it were typed: an agent CLI shows it, or stops at it
    if len(text.encode()) > PROMPT_LIMIT:
        write_atomic(directory.prompt, text)
        text = f"Read the file '{directory.prompt}' to its end: it is your task."
    return [*command, harmless(text)] if text else command


def agent_environment(
    tmux: Tmux, session: Session, project: Project, extra: Mapping[str, str]
) -> dict[str, str]:
    """Everything that the agent is given; nothing of ours that is not named here."""
    own = plain_environment()
    own.pop("TERM", None)  # that of its pane is added by the launcher
    passed = {name: os.environ[name] for name in project.agent.pass_env if name in os.environ}
    chosen = own | passed | project.agent.env | dict(extra)
    if wrong := [name for name in chosen if not VARIABLE.fullmatch(name)]:
        raise UsageError(f"'{wrong[0]}' in agent.env cannot be a variable's name")
    path = [str(shell_root() / "bin"), chosen.get("PATH") or os.defpath]
    return chosen | {
        "PATH": ":".join(path),
        "SM_PYTHON": sys.executable,
        "PHASE_FILE": str(session.root.phase(session.project, session.issue)),
        "PROJECT_NAME": session.project,
        "ISSUE": str(session.issue),
        "CLAUDE_SESSION_MANAGER_ID": session.name,
        "SESSION_NAME": session.name,
        "SM_STATE_ROOT": str(session.state_root),
        "SM_CONFIG": str(session.config),
        **({"SM_TMUX_SOCKET": tmux.socket} if tmux.socket else {}),
    }
