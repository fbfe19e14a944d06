"""Where the server listens, and the token that it asks for: nothing of the web yet."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import MutableMapping
from ipaddress import ip_address
from pathlib import Path

from sm.errors import SmError, UsageError

VARIABLE = "SM_SERVE_TOKEN"
TOKEN = re.compile(r"[!-~]{16,512}")
BACKLOG = 128


def token(file: Path | None, env: MutableMapping[str, str]) -> str:
    """The token of the file, else of the variable, which goes; '' where there is neither.

    The monitors that the server starts have its environment, and must not have the token.

    Raises:
        UsageError: there is one that cannot be used.

    """
    given = env.pop(VARIABLE, "")
    found, origin = (given, VARIABLE) if file is None else (_read(file), f"'{file}'")
    if file is None and not given:
        return ""
    if not TOKEN.fullmatch(found.strip()):
        raise UsageError(
            f"{origin} has no usable token: 16 to 512 letters, digits and signs without blanks, "
            "as 'openssl rand -hex 32' makes them"
        )
    return found.strip()


def _read(file: Path) -> str:
    try:
        # Opening a FIFO would wait.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise UsageError(f"'{file}' is no file: put the token into one")
            if found.st_uid != os.geteuid():
                raise UsageError(f"'{file}' is not owned by you: put the token into one that is")
            if found.st_mode & 0o077:
                raise UsageError(f"'{file}' can be read by others: run chmod 600 on it")
            return opened.read(4096).decode("ascii", "replace")
    except OSError as error:
        raise UsageError(
            f"cannot read '{file}': {os.strerror(error.errno or 0).lower()}"
        ) from error


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ip_address(listener.getsockname()[0]).is_loopback


def url(host: str, port: int) -> str:
    """The address as a client has it."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(host: str, port: int, *, protected: bool) -> socket.socket:
    """A socket that listens there; port 0 takes a free one.

    Raises:
        UsageError: there is no such address, or others could reach it and nothing protects it.
        SmError: it is taken.

    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on '{host}': it is no address") from error
    if not protected and not ip_address(address[0]).is_loopback:
        raise UsageError(
            f"'{host}' can be reached from elsewhere: set a token with --token-file, "
            "or listen on 127.0.0.1"
        )
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        reason = os.strerror(error.errno or 0).lower()
        raise SmError(
            f"cannot listen on '{url(host, port)}': {reason}: choose another port with --port"
        ) from error
    return listener
