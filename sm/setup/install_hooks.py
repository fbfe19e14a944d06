"""Installs, removes and shows our hooks in a person's own settings."""

from __future__ import annotations

import shlex
from pathlib import Path

from msgspec import Struct

from sm.adapters import settings_file
from sm.adapters.settings_file import SettingsFile
from sm.base.errors import UsageError
from sm.sessions import personal_hooks
from sm.sessions.agent_hooks import HOOKS
from sm.shell_root import find_shell_root


class HookView(Struct, frozen=True):
    """Hook: the command that `sm hooks install` sets, and whether it is in the settings."""

    event: str
    command: str
    installed: bool


class HooksView(Struct, frozen=True):
    """Hooks in one settings file; `wraps` is the person's own status line, or ''."""

    settings: Path
    installed: bool
    hooks: tuple[HookView, ...]
    wraps: str


default_settings = personal_hooks.find_default_settings


def find_hooks_dir() -> Path:
    """Return the folder of the hooks."""
    return find_shell_root() / "lib" / "hooks"


def install(path: Path) -> str:
    """Merge our hooks into the settings at `path`; return what to tell.

    Raises:
        UsageError: the file cannot be used as settings.
        SmError: it cannot be read or written.

    """
    file = settings_file.read(path)
    wanted = _add_hooks(file)
    if wanted == file.settings:
        return f"already installed in '{file.path}'"
    settings_file.write(file, wanted)
    backup = f" (before: '{file.backup}')" if file.backup.exists() else ""
    return f"installed {len(HOOKS)} hooks and the status line in '{file.path}'{backup}"


def _add_hooks(file: SettingsFile) -> dict[str, object]:
    try:
        return personal_hooks.add_hooks(file.settings, find_hooks_dir())
    except UsageError as error:
        raise UsageError(f"cannot use '{file.path}': {error.message}") from error


def uninstall(path: Path) -> str:
    """Remove our hooks from the settings at `path`; return what to tell.

    Settings without a change since the installation come back byte for byte.

    Raises:
        UsageError: the file cannot be used as settings.
        SmError: it cannot be read or written.

    """
    file = settings_file.read(path)
    wanted = personal_hooks.remove_hooks(file.settings)
    if wanted == file.settings:
        return f"nothing of sm in '{file.path}'"
    before = file.backup.read_bytes() if file.backup.is_file() else None
    if before is not None and settings_file.parse(before, file.backup) == wanted:
        settings_file.restore(file, before)
    elif before is None and not wanted:
        settings_file.remove(file)  # install has made it
    else:
        settings_file.write(file, wanted)
    return f"removed the hooks and the status line from '{file.path}'"


def look(path: Path) -> HooksView:
    """Return what is installed in the settings at `path`, or would be.

    Raises:
        UsageError: the file cannot be used as settings.
        SmError: it cannot be read.

    """
    file = settings_file.read(path)
    wanted = _add_hooks(file)
    line, theirs = (
        wanted["statusLine"],
        personal_hooks.unwrap_status_line(file.settings.get("statusLine")),
    )
    views = []
    for event in HOOKS:
        command = personal_hooks.find_command(wanted, event) or ""
        is_there = personal_hooks.find_command(file.settings, event) == command
        views.append(HookView(event, command, is_there))
    shown = str(line["command"]) if isinstance(line, dict) else ""
    views.append(HookView("statusLine", shown, theirs is not None))
    return HooksView(
        settings=file.path,
        installed=all(view.installed for view in views),
        hooks=tuple(views),
        wraps=personal_hooks.unwrap_status_line(line) or "",
    )


def list_missing(path: Path) -> list[str]:
    """Return the events whose hook is not there, or leads nowhere; none if no hook is installed.

    Hooks of another clone of sm, which is there, will do.

    Raises:
        UsageError: the file cannot be used as settings.
        SmError: it cannot be read.

    """
    settings = settings_file.read(path).settings
    found = {event: personal_hooks.find_command(settings, event) for event in HOOKS}
    if not any(found.values()):
        return []
    return [
        event
        for event, command in found.items()
        if command is None or not Path(shlex.split(command)[-1]).is_file()
    ]
