"""Knows the hooks of Claude Code, and makes the settings with which the client calls them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sm.store.files import write_json
from sm.store.paths import SessionDir

HOOKS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "PostToolUse": "post-tool-use",
    "PermissionRequest": "permission-request",
    "Notification": "notification",
    "PreCompact": "pre-compact",
    "PostCompact": "post-compact",
    "Stop": "stop",
    "StopFailure": "stop-failure",
    "SessionEnd": "session-end",
}
"""The client's events, and the files of `lib/hooks` that they call."""

STATUS_LINE = "status-line"
TIMEOUT_S = 10
"""Seconds after which the client ends a hook: several times as long as a hook waits for a lock."""

PERSONAL = "SM_HOOKS=user"
"""Marks commands in a person's own settings. In sessions of `sm` they do nothing."""
WRAPPED = "SM_STATUS_LINE"


def make_command(
    hooks_dir: Path, name: str, *, personal: bool = False, status_line: str = ""
) -> str:
    """Return the shell command of a hook. `-p` keeps the environment from changing bash."""
    words = [PERSONAL] if personal else []
    if status_line:
        words.append(f"{WRAPPED}={shlex.quote(status_line)}")
    return " ".join([*words, "bash", "-p", shlex.quote(str(hooks_dir / name))])


def make_entry(shell_command: str) -> dict[str, Any]:
    """Return one element of an event's list in the settings: for every tool and reason."""
    hook = {"type": "command", "command": shell_command, "timeout": TIMEOUT_S}
    return {"hooks": [hook]}


def make_settings(
    hooks_dir: Path,
    *,
    status_line: str = "",
    variables: Mapping[str, str] | None = None,
    withheld: Sequence[str] = (),
) -> dict[str, Any]:
    """Return settings of Claude Code with all hooks and the status line.

    `status_line` is the person's own command; its output replaces ours. A person may have switched
    all hooks off, and then nothing would be confirmed, and no text come with its prompt. The
    `variables` win over those of the client's own settings. Its model does not get the tools that
    are `withheld`, beside those that the person's own rules deny.
    """
    return {
        "disableAllHooks": False,
        "env": dict(variables or {}),
        **({"permissions": {"deny": list(withheld)}} if withheld else {}),
        "hooks": {
            event: [make_entry(make_command(hooks_dir, name))] for event, name in HOOKS.items()
        },
        "statusLine": {
            "type": "command",
            "command": make_command(hooks_dir, STATUS_LINE, status_line=status_line),
        },
    }


def are_ours(directory: SessionDir) -> bool:
    """Say whether the agent's settings have our hooks. If so, it has all of them."""
    return directory.settings.exists()


def write_settings(
    directory: SessionDir,
    hooks_dir: Path,
    *,
    status_line: str = "",
    variables: Mapping[str, str] | None = None,
    withheld: Sequence[str] = (),
) -> Path:
    """Write the settings of one session, for the client's `--settings`; return the file."""
    settings = make_settings(
        hooks_dir, status_line=status_line, variables=variables, withheld=withheld
    )
    write_json(directory.settings, settings)
    return directory.settings
