"""Address of a server: its socket, its public URL and its tokens, before any library is loaded."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import MutableMapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from sm.base.errors import SmError, UsageError

VARIABLE = "SM_SERVE_TOKEN"
TOKEN = re.compile(r"[!-~]{16,512}")
BACKLOG = 128
FILE_LIMIT = 64 * 1024
"""Bytes of a file with tokens."""
NAME = re.compile(r"[a-z0-9_-]+(?:[.][a-z0-9_-]+)*", re.ASCII)
LOCAL = ("localhost", "127.0.0.1")


def read_token(file: Path | None, env: MutableMapping[str, str]) -> str:
    """Return the token of the file, else of the variable, which is removed; '' if there is none.

    The server's monitors have its environment, and must not get the token.

    Raises:
        UsageError: the token cannot be used.

    """
    given = env.pop(VARIABLE, "")
    if file is not None:
        return read_secret(file)
    return _usable(given, VARIABLE) if given else ""


def read_secret(file: Path) -> str:
    """Return the token, or another secret, from a private file of the user.

    Raises:
        UsageError: the file cannot be read, others can read it, or it has no usable secret.

    """
    return _usable(_read(file), f"'{file}'")


def read_readers(file: Path | None, token: str) -> tuple[str, ...]:
    """Return the tokens that only read: each line of a private file, without remarks (`#`).

    Raises:
        UsageError: the file cannot be used, has none, or has the `token` that acts.

    """
    if file is None:
        return ()
    lines = [line.strip() for line in _read(file).splitlines()]
    found = tuple(_usable(line, f"'{file}'") for line in lines if line and line[0] != "#")
    if not found:
        raise UsageError(f"'{file}' has no token: put one into each line")
    if token in found:
        raise UsageError(f"'{file}' has the token that acts: a token that only reads is another")
    return found


def _usable(found: str, origin: str) -> str:
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
            if found.st_size > FILE_LIMIT:
                raise UsageError(f"'{file}' is above {FILE_LIMIT:,} bytes: put only tokens there")
            return opened.read(FILE_LIMIT).decode("ascii", "replace")
    except OSError as error:
        raise UsageError(
            f"cannot read '{file}': {os.strerror(error.errno or 0).lower()}"
        ) from error


def parse_tls_origin(url: str) -> str:
    """Return the origin for a page; only over TLS do browsers keep a login to themselves.

    Raises:
        UsageError: browsers cannot use it.

    """
    origin = parse_public_origin(url)
    if origin and not origin.startswith("https://"):
        raise UsageError(f"'{url}' cannot be the public URL: browsers need https://")
    return origin


def parse_public_origin(url: str) -> str:
    """Return the origin of the URL under which a proxy offers a server; '' for ''.

    Raises:
        UsageError: remote clients cannot use it.

    """
    if not url:
        return ""
    parts = urlsplit(url)
    name = (parts.hostname or "").removesuffix(".")
    is_plain = parts.path in ("", "/") and not (parts.query or parts.fragment or "@" in url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and name in LOCAL)
    if not (is_plain and is_safe and NAME.fullmatch(name)):
        raise UsageError(
            f"'{url}' cannot be the public URL: it begins with https://, and has a name "
            "of its own, perhaps a port, and nothing more (no path), such as https://sm.example.org"
        )
    return f"{parts.scheme}://{name}{_port(url, parts)}"


def _port(url: str, parts: SplitResult) -> str:
    """Return the port with its colon; '' for the default port."""
    try:
        port = parts.port
    except ValueError as error:
        raise UsageError(f"'{url}' cannot be the public URL: it has no usable port") from error
    usual = 443 if parts.scheme == "https" else 80
    return "" if port in (None, usual) else f":{port}"


def is_loopback(listener: socket.socket) -> bool:
    """Say whether only this machine can reach the socket."""
    if listener.family == socket.AF_UNIX:
        return True
    return ip_address(listener.getsockname()[0]).is_loopback


def format_url(host: str, port: int) -> str:
    """Return the address for a client."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(host: str, port: int, *, protected: bool) -> socket.socket:
    """Return a socket that listens there; port 0 takes a free one.

    Raises:
        UsageError: there is no such address, or others could reach it without protection.
        SmError: the address is taken.

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
            f"cannot listen on '{format_url(host, port)}': {reason}: "
            "choose another port with --port"
        ) from error
    return listener
