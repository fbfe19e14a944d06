"""The hooks of Claude Code: which there are, and the settings by which the client calls them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
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
"""The client's events, and the files of `lib/hooks` that are called for them."""

STATUS_LINE = "status-line"
TIMEOUT_S = 10
"""After which the client ends a hook: several times what one takes that waits for the lock."""

PERSONAL = "SM_HOOKS=user"
"""Marks commands in a person's own settings; in sessions that `sm` has started they do nothing."""
WRAPPED = "SM_STATUS_LINE"


def command(hooks_dir: Path, name: str, *, personal: bool = False, status_line: str = "") -> str:
    """The shell command for one hook. `-p` keeps the environment from changing what bash does."""
    words = [PERSONAL] if personal else []
    if status_line:
        words.append(f"{WRAPPED}={shlex.quote(status_line)}")
    return " ".join([*words, "bash", "-p", shlex.quote(str(hooks_dir / name))])


def entry(shell_command: str) -> dict[str, Any]:
    """One element of an event's list in the settings: for every tool and every reason."""
    hook = {"type": "command", "command": shell_command, "timeout": TIMEOUT_S}
    return {"hooks": [hook]}


def settings(hooks_dir: Path, *, status_line: str = "") -> dict[str, Any]:
    """A settings object of Claude Code with all hooks and the status line.

    `status_line` is the person's own command, whose output is shown in place of ours.
    """
    return {
        "hooks": {event: [entry(command(hooks_dir, name))] for event, name in HOOKS.items()},
        "statusLine": {
            "type": "command",
            "command": command(hooks_dir, STATUS_LINE, status_line=status_line),
        },
    }


def write_settings(
    directory: SessionDir,
    hooks_dir: Path,
    *,
    status_line: str = "",
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Write the settings of one session, for the client's `--settings`; returns the file.

    `extra` are further settings; the hooks and the status line stay ours.
    """
    write_json(directory.settings, dict(extra or {}) | settings(hooks_dir, status_line=status_line))
    return directory.settings
