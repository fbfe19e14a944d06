"""Our hooks in a person's own settings: install, uninstall, look."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from sm.adapters import settingsfile
from sm.adapters.settingsfile import SettingsFile
from sm.errors import UsageError
from sm.session import personalhooks
from sm.session.hookfiles import HOOKS
from sm.shellroot import shell_root


class HookView(Struct, frozen=True):
    """One hook: the command that `sm hooks install` sets, and whether it is in the settings."""

    event: str
    command: str
    installed: bool


class HooksView(Struct, frozen=True):
    """All hooks in one settings file; `wraps` is the person's own status line, or empty."""

    settings: Path
    installed: bool
    hooks: tuple[HookView, ...]
    wraps: str


default_settings = personalhooks.default_settings


def hooks_dir() -> Path:
    """Where the hooks are."""
    return shell_root() / "lib" / "hooks"


def install(path: Path) -> str:
    """Merge our hooks into the settings at `path`; returns what to tell.

    Raises:
        UsageError: the file cannot be used as settings.
        SmError: it cannot be read or written.

    """
    file = settingsfile.read(path)
    wanted = _installed(file)
    if wanted == file.settings:
        return f"already installed in '{file.path}'"
    settingsfile.write(file, wanted)
    backup = f" (before: '{file.backup}')" if file.backup.exists() else ""
    return f"installed {len(HOOKS)} hooks and the status line in '{file.path}'{backup}"


def _installed(file: SettingsFile) -> dict[str, object]:
    try:
        return personalhooks.installed(file.settings, hooks_dir())
    except UsageError as error:
        raise UsageError(f"cannot use '{file.path}': {error.message}") from error


def uninstall(path: Path) -> str:
    """Take our hooks out of the settings at `path` again; returns what to tell.

    What was not changed since they were installed is given back byte for byte.

    Raises:
        UsageError: the file cannot be used as settings.
        SmError: it cannot be read or written.

    """
    file = settingsfile.read(path)
    wanted = personalhooks.removed(file.settings)
    if wanted == file.settings:
        return f"nothing of sm in '{file.path}'"
    before = file.backup.read_bytes() if file.backup.is_file() else None
    if before is not None and settingsfile.parse(before, file.backup) == wanted:
        settingsfile.restore(file, before)
    elif before is None and not wanted:
        file.path.unlink()  # install has made it
    else:
        settingsfile.write(file, wanted)
    return f"removed the hooks and the status line from '{file.path}'"


def look(path: Path) -> HooksView:
    """What is installed in the settings at `path`, or would be.

    Raises:
        UsageError: the file cannot be used as settings.
        SmError: it cannot be read.

    """
    file = settingsfile.read(path)
    wanted = _installed(file)
    line, theirs = wanted["statusLine"], personalhooks.wrapped(file.settings.get("statusLine"))
    views = [_view(file, event, personalhooks.command_of(wanted, event) or "") for event in HOOKS]
    shown = str(line["command"]) if isinstance(line, dict) else ""
    views.append(HookView("statusLine", shown, theirs is not None))
    return HooksView(
        settings=file.path,
        installed=all(view.installed for view in views),
        hooks=tuple(views),
        wraps=personalhooks.wrapped(line) or "",
    )


def _view(file: SettingsFile, event: str, command: str) -> HookView:
    return HookView(event, command, personalhooks.command_of(file.settings, event) == command)
