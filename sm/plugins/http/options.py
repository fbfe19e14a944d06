"""What the commands that answer over HTTP share: where they listen, and who may ask."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from sm.base.errors import UsageError
from sm.base.output import say

if TYPE_CHECKING:
    import socket

    from sm.plugins.http.guard import Rules
    from sm.sessions.machine import Machine


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
) -> Iterator[tuple[socket.socket, Rules]]:
    """A socket that listens as the options say, and who may ask; prints its URL, with `path`.

    `public_url`: where a proxy on this machine offers it to others, '' for nowhere.

    Raises:
        UsageError: an agent has called, or there is no such place or token.

    """
    from sm.plugins.http import listening
    from sm.plugins.http.guard import Rules
    from sm.sessions.caller import identify

    identify(machine.root, os.environ).check_may_serve()
    token = listening.read_token(token_file, os.environ)
    public = listening.parse_public_origin(public_url)
    with listening.listen(address, port, protected=bool(token)) as listener:
        is_loopback = listening.is_loopback(listener)
        if public and not is_loopback:
            raise UsageError(
                f"with a public URL others come through its proxy: listen on 127.0.0.1, not on "
                f"'{address}'"
            )
        url = listening.format_url(address, listener.getsockname()[1])
        with _ending_quietly():
            say(f"listening on {url}{path}")
            yield listener, Rules(token, is_loopback, public)


@contextlib.contextmanager
def _ending_quietly() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the process without an error: a server is stopped by them.

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
