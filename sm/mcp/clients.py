"""The configuration of MCP clients: our server is put into it, and nothing else is changed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from sm.adapters import settingsfile
from sm.errors import UsageError
from sm.workflow.host import Host

SERVERS = "mcpServers"
NAME = "sm"


class McpClient(StrEnum):
    """A client whose configuration we know."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"


def entry(host: Host, env: Mapping[str, str]) -> dict[str, Any]:
    """How a client starts our server: by the very Python that runs now, wherever it is called."""
    named = ["--config", str(host.source)] if host.source else []
    # What our environment says of where things are: a client may be started in another one, and
    # in another folder.
    places = {
        "SM_STATE_ROOT": host.machine.state_root,
        "SM_TMUX_SOCKET": host.machine.tmux_socket,
        "SM_BRIDGE_DATABASE": host.machine.bridge_database,
    }
    return {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-Im", "sm", *named, "mcp"],
        "env": {name: str(place) for name, place in places.items() if env.get(name)},
    }


def printed(host: Host, env: Mapping[str, str]) -> dict[str, Any]:
    """The same as the part of a configuration that a person adds by hand."""
    return {SERVERS: {NAME: entry(host, env)}}


def present(env: Mapping[str, str]) -> tuple[McpClient, ...]:
    """The clients that this person seems to use."""
    found = {
        McpClient.CLAUDE_CODE: _claude_code(env).exists() or bool(shutil.which("claude")),
        McpClient.CLAUDE_DESKTOP: _claude_desktop(env).parent.is_dir(),
    }
    return tuple(client for client, there in found.items() if there)


def install(client: McpClient, host: Host, env: Mapping[str, str]) -> str:
    """Add our server to the client's configuration, or bring it up to date; returns what to tell.

    Raises:
        UsageError: the file cannot be used as a configuration, or has another server of our name.
        SmError: it cannot be read or written.

    """
    file = settingsfile.read(configuration(client, env))
    servers = _servers(file)
    ours = servers.get(NAME, {}) | entry(host, env)
    wanted = file.settings | {SERVERS: servers | {NAME: ours}}
    if wanted == file.settings:
        return f"{client}: already in '{file.path}'"
    is_first = file.raw is not None and not file.backup.exists()
    settingsfile.write(file, wanted)
    backup = f" (before: '{file.backup}')" if is_first else ""
    return f"{client}: added the server '{NAME}' to '{file.path}'{backup}; restart the client"


def uninstall(client: McpClient, env: Mapping[str, str]) -> str:
    """Take our server out of the client's configuration again; returns what to tell.

    Raises:
        UsageError, SmError: as `install`.

    """
    file = settingsfile.read(configuration(client, env))
    servers = _servers(file)
    if NAME not in servers:
        return f"{client}: nothing of sm in '{file.path}'"
    del servers[NAME]
    settingsfile.write(file, file.settings | {SERVERS: servers})
    return f"{client}: removed the server '{NAME}' from '{file.path}'"


def configuration(client: McpClient, env: Mapping[str, str]) -> Path:
    """Where the client keeps the servers that it uses everywhere."""
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


def _servers(file: settingsfile.SettingsFile) -> dict[str, Any]:
    servers = file.settings.get(SERVERS, {})
    if not isinstance(servers, dict):
        raise UsageError(f"'{SERVERS}' in '{file.path}' is not an object: mend it first")
    if NAME in servers and not _is_ours(servers[NAME]):
        raise UsageError(
            f"'{file.path}' has a server '{NAME}' that is not this one: rename or remove it first"
        )
    return dict(servers)


def _is_ours(server: object) -> bool:
    """Whether it is how `sm mcp` is started: by `entry`, once, or by a person's own hand."""
    match server:
        case {"args": ["-Im", "sm", *_, "mcp"]}:
            return True
        case {"command": str(command), "args": [*_, "mcp"]}:
            return Path(command).name == NAME
    return False
