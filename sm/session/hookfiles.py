"""The settings by which Claude Code calls our hooks: one file for each session that sm starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sm.store.files import write_json
from sm.store.paths import SessionDir

TIMEOUT_S = 10
"""So long the client lets a hook run at most; ours need some milliseconds."""

EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "PostToolUse": "post-tool-use",
    "Stop": "stop",
    "StopFailure": "stop-failure",
    "PreCompact": "pre-compact",
    "PostCompact": "post-compact",
    "Notification": "notification",
    "PermissionRequest": "permission-request",
    "SessionEnd": "session-end",
}
"""The client's events, and the script of `lib/hooks` for each."""


def settings(hooks: Path) -> dict[str, Any]:
    """What the client's settings say of our hooks, which are in the folder `hooks`."""
    return {
        "hooks": {event: [{"hooks": [_command(hooks / name)]}] for event, name in EVENTS.items()},
        "statusLine": _command(hooks / "status-line"),
    }


def _command(script: Path) -> dict[str, Any]:
    import shlex

    return {"type": "command", "command": f"bash -p {shlex.quote(str(script))}"}


def write_settings(directory: SessionDir, hooks: Path) -> None:
    """Write the settings of one session."""
    write_json(directory.settings, settings(hooks))
