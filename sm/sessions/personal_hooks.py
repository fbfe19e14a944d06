"""Adds our hooks to a person's own settings, and removes them. It changes nothing else.

The functions take and return settings as objects; `sm.adapters.settings_file` reads and writes
them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from sm.adapters import settings_file
from sm.base.errors import SmError, UsageError
from sm.sessions import agent_hooks as hookfiles
from sm.sessions.agent_hooks import HOOKS, PERSONAL, STATUS_LINE, WRAPPED

Settings = dict[str, Any]


def add_hooks(settings: Settings, hooks_dir: Path) -> Settings:
    """Return `settings` with every hook, and with its status line wrapped.

    Raises:
        UsageError: the settings do not have the shape that Claude Code gives them.

    """
    result = deepcopy(settings)
    hooks = result.setdefault("hooks", {})
    _check_shape(hooks)
    for event, name in HOOKS.items():
        ours = hookfiles.make_entry(hookfiles.make_command(hooks_dir, name, personal=True))
        entries = hooks.setdefault(event, [])
        if ours not in entries:
            _remove_from(entries)
            entries.append(ours)
    line = result.setdefault("statusLine", {"type": "command", "command": ""})
    line["command"] = _wrap(line, hooks_dir)
    return result


def _check_shape(hooks: object) -> None:
    if not isinstance(hooks, dict):
        raise UsageError("'hooks' in it is not an object: mend that first")
    for event in HOOKS:
        if not isinstance(hooks.get(event, []), list):
            raise UsageError(f"'hooks.{event}' in it is not a list: mend that first")


def _wrap(line: object, hooks_dir: Path) -> str:
    if not isinstance(line, dict) or not isinstance(line.get("command", None), str):
        raise UsageError("'statusLine' in it is not a command: mend or remove it first")
    theirs = unwrap_status_line(line)
    return hookfiles.make_command(
        hooks_dir,
        STATUS_LINE,
        personal=True,
        status_line=line["command"] if theirs is None else theirs,
    )


def remove_hooks(settings: Settings) -> Settings:
    """Return `settings` without what `add_hooks` adds; lists that become empty go, too."""
    result = deepcopy(settings)
    hooks = result.get("hooks")
    if isinstance(hooks, dict):
        for event in [event for event, entries in hooks.items() if isinstance(entries, list)]:
            if _remove_from(hooks[event]) and not hooks[event]:
                del hooks[event]
        if not hooks and settings["hooks"]:
            del result["hooks"]
    theirs = unwrap_status_line(result.get("statusLine"))
    if theirs:
        result["statusLine"]["command"] = theirs
    elif theirs is not None:
        del result["statusLine"]
    return result


def _remove_from(entries: list[Any]) -> bool:
    """Remove our hooks from one event's list; say whether there were any."""
    before = deepcopy(entries)
    for entry in list(entries):
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        if isinstance(inner, list) and any(_is_ours(hook) for hook in inner):
            inner[:] = [hook for hook in inner if not _is_ours(hook)]
            if not inner:
                entries.remove(entry)
    return entries != before


def find_command(settings: Settings, event: str) -> str | None:
    """Return our command for `event`, if it is installed."""
    hooks = settings.get("hooks")
    entries = hooks.get(event) if isinstance(hooks, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        for hook in inner if isinstance(inner, list) else []:
            if _is_ours(hook):
                return str(hook["command"])
    return None


def unwrap_status_line(line: object) -> str | None:
    """Return the command that our status line wraps, '' for none; None if not ours."""
    words = _our_words(line)
    if words is None:
        return None
    return next((w.partition("=")[2] for w in words if w.startswith(f"{WRAPPED}=")), "")


def find_default_settings(env: Mapping[str, str]) -> Path:
    """Return the path of a person's own Claude Code settings in this environment."""
    if folder := env.get("CLAUDE_CONFIG_DIR"):
        return Path(folder) / "settings.json"
    return Path(env.get("HOME") or Path.home()) / ".claude" / "settings.json"


def read_status_line(path: Path) -> str:
    """Return the person's own status line command in the settings at `path`; '' for none.

    Unreadable settings count as none, so that a session can start without them.
    """
    try:
        line = settings_file.read(path).settings.get("statusLine")
    except SmError:
        return ""
    theirs = unwrap_status_line(line)
    if theirs is not None:
        return theirs
    command = line.get("command") if isinstance(line, dict) else None
    return command if isinstance(command, str) else ""


def _is_ours(hook: object) -> bool:
    return _our_words(hook) is not None


def _our_words(hook: object) -> list[str] | None:
    """Return the words of one of our commands, from any clone; None for another command."""
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str) or not command.startswith(f"{PERSONAL} "):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    names = {*HOOKS.values(), STATUS_LINE}
    return words if words[-3:-1] == ["bash", "-p"] and Path(words[-1]).name in names else None
