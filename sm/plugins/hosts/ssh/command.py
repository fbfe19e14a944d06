"""The command lines of ssh: which options it gets, and how `sm` is called there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from sm.plugins.hosts.settings import SshHost

SOCKET = "master"
"""The control socket, in the host's folder: ssh is called there, as the path of a socket is short
(unix(7): 108 bytes)."""
CONNECT_S = 10
ALIVE_S, ALIVE_COUNT = 5, 3
"""So a connection over which nothing comes ends after 15 s (ssh_config(5), ServerAliveCountMax)."""
PERSIST_S = 600
"""How long a connection stays that nobody uses."""

OURS = (
    "BatchMode=yes",
    f"ConnectTimeout={CONNECT_S}",
    f"ServerAliveInterval={ALIVE_S}",
    f"ServerAliveCountMax={ALIVE_COUNT}",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    f"ControlPath={SOCKET}",
)
"""The first value that ssh is given counts, so these come before those of the configuration. The
check of host keys is the user's."""


def _with_options(host: SshHost, *options: str) -> Iterator[str]:
    for option in (*OURS, *options, *host.options):
        yield from ("-o", option)


def open_master(host: SshHost) -> list[str]:
    """Return what opens the connection that all others share."""
    master = ("ControlMaster=yes", f"ControlPersist={PERSIST_S}")
    return ["ssh", "-N", "-T", *_with_options(host, *master), "--", host.address]


def ask_master(host: SshHost, what: str) -> list[str]:
    """Return what asks the shared connection, `check`, or ends it, `exit`."""
    return ["ssh", "-O", what, "-o", f"ControlPath={SOCKET}", "--", host.address]


def run_there(host: SshHost, command: str, *, terminal: bool = False) -> list[str]:
    """Return what runs a shell command there, by the shared connection.

    With a `terminal` there, what runs is hung up on when ssh ends, also one that says nothing
    (sshd closes the terminal); there is one whether or not ssh has one here (`-tt`). ssh then says
    nothing of its own: it would be that a shared connection was closed.
    """
    how = "-qtt" if terminal else "-T"
    options = _with_options(host, "ControlMaster=no")
    return ["ssh", how, *options, "--", host.address, command]


def call_sm(host: SshHost, words: Iterable[str]) -> str:
    """Return the shell command there that is `sm` with these words.

    It is understood by any login shell: a shell of ours gets all that is quoted. A shell that is
    not a login shell has no ~/.local/bin on its PATH, mostly.
    """
    line = f'PATH="$PATH:$HOME/.local/bin"; exec {_quote_program(host.sm)} {shlex.join(words)}'
    return f"exec /bin/sh -c {shlex.quote(line)}"


def _quote_program(path: str) -> str:
    if not path:
        return "sm"
    return f'"$HOME"/{shlex.quote(path[2:])}' if path.startswith("~/") else shlex.quote(path)
