"""Options of the commands that answer over HTTP: where they listen, and who may ask."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from sm.base.errors import UsageError
from sm.base.output import say

if TYPE_CHECKING:
    import socket

    from sm.sessions.machine import Machine
    from sm.web.guard import GuardRules


def listening_options(port: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`address: str, port: int, token_file: Path | None`; `port`: the default."""
    options = (
        click.option(
            "--host",
            "address",
            metavar="ADDRESS",
            default="127.0.0.1",
            show_default=True,
            help="Where to listen; other machines need a token.",
        ),
        click.option(
            "--port",
            metavar="PORT",
            type=click.IntRange(0, 65535),
            default=port,
            show_default=True,
            help="0 takes a free one.",
        ),
        click.option(
            "--token-file",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Every request must bring the token in this file; SM_SERVE_TOKEN does the same.",
        ),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@contextlib.contextmanager
def listening(
    machine: Machine,
    address: str,
    port: int,
    token_file: Path | None,
    *,
    path: str = "",
    public_url: str = "",
) -> Iterator[tuple[socket.socket, GuardRules]]:
    """Listen as the options say, and yield the socket and who may ask; print its URL, with `path`.

    `public_url`: where a proxy on this machine offers it to others, '' for nowhere. Then what is
    behind it issues tokens of its own.

    Raises:
        UsageError: an agent has called, or there is no such place or token.

    """
    from sm.web.address import format_url, is_loopback, parse_public_origin, read_token
    from sm.web.guard import GuardRules

    check_may_serve(machine)
    token = read_token(token_file, os.environ)
    public = parse_public_origin(public_url)
    with listening_on_port(address, port, bool(token), public) as listener, ending_quietly():
        say(f"listening on {format_url(address, listener.getsockname()[1])}{path}")
        yield listener, GuardRules(token, is_loopback(listener), public, issues=bool(public))
    leave()


def check_may_serve(machine: Machine) -> None:
    """Refuse an agent.

    Raises:
        UsageError: an agent has called.

    """
    from sm.sessions.caller import identify

    identify(machine.root, os.environ).check_may_serve()


@contextlib.contextmanager
def listening_on_port(
    address: str, port: int, protected: bool, public: str
) -> Iterator[socket.socket]:
    """Yield a socket that listens there; only on this machine if there is a `public` URL.

    Raises:
        UsageError: there is no such address, or others could reach it.

    """
    from sm.web.address import is_loopback, listen

    with listen(address, port, protected=protected) as listener:
        if public and not is_loopback(listener):
            raise UsageError(
                f"with a public URL others come through its proxy: listen on 127.0.0.1, not on "
                f"'{address}'"
            )
        yield listener


@contextlib.contextmanager
def ending_quietly() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the process without an error: they are how a server is stopped.

    The server has its own way once it runs.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(0)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def leave() -> None:
    """End the process, also if threads still wait for a terminal or a forge."""
    if threading.active_count() > 1:
        os._exit(0)
