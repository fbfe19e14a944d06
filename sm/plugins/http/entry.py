"""Entry to `sm serve`: how it is reached, by whom, and what it says of that."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sm.base.errors import UsageError
from sm.base.output import say
from sm.web.options import check_may_serve, ending_quietly, leave, listening_on_port
from sm.web.rights import TokenFiles

if TYPE_CHECKING:
    from sm.sessions.machine import Machine
    from sm.web.guard import GuardRules
    from sm.web.sites import Site

FORWARDED = 8420
"""Port on a person's own machine in the advice for a Unix socket."""


class ListeningPlace(NamedTuple):
    """Address of `sm serve`, a port or the Unix socket `path`; and who is let in."""

    address: str
    port: int
    path: Path | None
    token_file: Path | None
    readers_file: Path | None
    public_url: str


@contextlib.contextmanager
def serving(machine: Machine, entry: ListeningPlace) -> Iterator[tuple[socket.socket, GuardRules]]:
    """Listen there, and yield the socket and who may ask; print where that is.

    Raises:
        UsageError: an agent has called, or there is no such place or token.

    """
    from sm.web import address
    from sm.web.guard import GuardRules
    from sm.web.rights import Tokenless
    from sm.web.unix_socket import listen_at

    check_may_serve(machine)
    token = address.read_token(entry.token_file, os.environ)
    readers = address.read_readers(entry.readers_file, token)
    look = TokenFiles(token, entry.token_file, entry.readers_file).read
    public = address.parse_tls_origin(entry.public_url)
    trust = None
    if public:
        trust = Tokenless.NOBODY  # all that a proxy passes on comes from this machine, and from us
    elif entry.path:
        trust = Tokenless.OWNER
    opened = (
        listen_at(entry.path, address.BACKLOG)
        if entry.path
        else listening_on_port(entry.address, entry.port, bool(token or readers), public)
    )
    with opened as listener, ending_quietly():
        port = 0 if entry.path else listener.getsockname()[1]
        say(f"listening on {entry.path or address.format_url(entry.address, port)}")
        is_loopback = address.is_loopback(listener)
        yield (
            listener,
            GuardRules(token, is_loopback, public, readers=readers, trust=trust, look=look),
        )
    leave()


def print_link(listener: socket.socket, rules: GuardRules, sites: list[Site]) -> str:
    """Print the link for a browser, and how it gets there; return the key in it.

    Raises:
        UsageError: no plugin has a page, or a browser could not keep its login safe.

    """
    from sm.base.nonce import make_nonce

    if not rules.loopback:
        raise UsageError("--open is for a browser on this machine: leave out --host")
    door = next((site.door for site in sites if site.door), "")
    if not door:
        raise UsageError("no plugin offers a page to a browser: leave --open out")
    key = make_nonce(32)
    say(f"open {_find_origin(listener, rules)}{door}{key}")
    return key


def _find_origin(listener: socket.socket, rules: GuardRules) -> str:
    from sm.web.address import format_url

    if rules.public:
        return rules.public
    if listener.family != socket.AF_UNIX:
        return format_url(*listener.getsockname()[:2])
    path = shlex.quote(listener.getsockname())
    say(f"for scripts here: curl --unix-socket {path} http://localhost/sessions")
    say(f"for a browser, first: ssh -N -L {FORWARDED}:{path} {socket.gethostname()}")
    return format_url("localhost", FORWARDED)
