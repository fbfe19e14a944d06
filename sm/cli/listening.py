"""What the commands that answer over HTTP share: where they listen, and who may ask."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sm.output import say

if TYPE_CHECKING:
    import socket

    from sm.server.guard import Rules
    from sm.workflow.host import Host


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
    host: Host, address: str, port: int, token_file: Path | None, *, path: str = ""
) -> Iterator[tuple[socket.socket, Rules]]:
    """A socket that listens as the options say, and who may ask; prints its URL, with `path`.

    Raises:
        UsageError: an agent has called, or there is no such place or token.

    """
    from sm.server import listening
    from sm.server.guard import Rules
    from sm.session.caller import identify

    identify(host.root, os.environ).check_may_serve()
    token = listening.token(token_file, os.environ)
    with listening.listen(address, port, protected=bool(token)) as listener:
        url = listening.url(address, listener.getsockname()[1])
        say(f"listening on {url}{path}")
        yield listener, Rules(token, listening.is_loopback(listener))
