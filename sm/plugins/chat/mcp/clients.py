"""Adds our server to the configuration of MCP clients, and changes nothing else there."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from sm.adapters import settings_file
from sm.base.errors import SmError, UsageError
from sm.sessions.machine import Machine

SERVERS = "mcpServers"
NAME = "sm"
PLACES = ("SM_STATE_ROOT", "SM_TMUX_SOCKET", "SM_BRIDGE_DATABASE")
"""Our variables of an entry; a person may have added others."""


class McpClient(StrEnum):
    """A client whose configuration sm knows."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"


def make_entry(machine: Machine, env: Mapping[str, str]) -> dict[str, Any]:
    """Return how a client starts our server: by the running Python, from any folder."""
    named = ["--config", str(machine.source)] if machine.source else []
    # The places that our environment names: a client may start with another environment, and
    # in another folder.
    settings = machine.settings
    values = (settings.state_root, settings.tmux_socket, settings.bridge_database)
    places = zip(PLACES, values, strict=True)
    return {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-Im", "sm", *named, "mcp"],
        "env": {name: str(place) for name, place in places if env.get(name)},
    }


def format_entry(machine: Machine, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry as the part of a configuration that a person adds by hand."""
    return {SERVERS: {NAME: make_entry(machine, env)}}


def list_present(env: Mapping[str, str]) -> tuple[McpClient, ...]:
    """Return the clients that this person seems to use."""
    found = {
        McpClient.CLAUDE_CODE: _claude_code(env).exists() or bool(shutil.which("claude")),
        McpClient.CLAUDE_DESKTOP: _claude_desktop(env).parent.is_dir(),
    }
    return tuple(client for client, there in found.items() if there)


def install(client: McpClient, machine: Machine, env: Mapping[str, str]) -> str:
    """Add our server to the client's configuration, or update it; return what to tell.

    Raises:
        UsageError: the file cannot be used as a configuration, or has another server of our name.
        SmError: it cannot be read or written.

    """
    file = settings_file.read(find_configuration(client, env))
    servers = _servers(file)
    ours = _update(servers.get(NAME, {}), make_entry(machine, env))
    wanted = file.settings | {SERVERS: servers | {NAME: ours}}
    if wanted == file.settings:
        return f"{client}: already in '{file.path}'"
    is_first = file.raw is not None and not file.backup.exists()
    settings_file.write(file, wanted)
    backup = f" (before: '{file.backup}')" if is_first else ""
    return f"{client}: added the server '{NAME}' to '{file.path}'{backup}; restart the client"


def _update(before: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return the entry with what a person has added to it, such as variables for a proxy."""
    known = before.get("env")
    theirs = known if isinstance(known, dict) else {}
    kept = {name: value for name, value in theirs.items() if name not in PLACES}
    return before | entry | {"env": kept | entry["env"]}


def uninstall(client: McpClient, env: Mapping[str, str]) -> str:
    """Remove our server from the client's configuration; return what to tell.

    Raises:
        UsageError, SmError: as `install`.

    """
    file = settings_file.read(find_configuration(client, env))
    servers = _servers(file)
    if NAME not in servers:
        return f"{client}: nothing of sm in '{file.path}'"
    del servers[NAME]
    settings_file.write(file, file.settings | {SERVERS: servers})
    return f"{client}: removed the server '{NAME}' from '{file.path}'"


def is_installed(client: McpClient, env: Mapping[str, str]) -> bool:
    """Say whether our server is in the client's configuration, as far as that can be read."""
    try:
        return NAME in _servers(settings_file.read(find_configuration(client, env)))
    except SmError:
        return False


def find_configuration(client: McpClient, env: Mapping[str, str]) -> Path:
    """Return the file in which the client keeps the servers that it uses everywhere."""
    return _claude_code(env) if client is McpClient.CLAUDE_CODE else _claude_desktop(env)


def _claude_code(env: Mapping[str, str]) -> Path:
    return Path(env.get("CLAUDE_CONFIG_DIR") or _home(env)) / ".claude.json"


def _claude_desktop(env: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        folder = _home(env) / "Library" / "Application Support"
    else:
        folder = Path(env.get("XDG_CONFIG_HOME") or _home(env) / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def _servers(file: settings_file.SettingsFile) -> dict[str, Any]:
    servers = file.settings.get(SERVERS, {})
    if not isinstance(servers, dict):
        raise UsageError(f"'{SERVERS}' in '{file.path}' is not an object: mend it first")
    if NAME in servers and not _is_ours(servers[NAME]):
        raise UsageError(
            f"'{file.path}' has a server '{NAME}' that is not this one: rename or remove it first"
        )
    return dict(servers)


def _is_ours(server: object) -> bool:
    """Say whether it starts `sm mcp`: written by `make_entry`, or by a person."""
    match server:
        case {"args": ["-Im", "sm", *_, "mcp"]}:
            return True
        case {"command": str(command), "args": [*_, "mcp"]}:
            return Path(command).name == NAME
    return False
