"""`sm serve`: the same operations over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.cli.options import pass_host

if TYPE_CHECKING:
    from sm.workflow.host import Host


@click.command("serve")
@click.option(
    "--host",
    "address",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; other machines need a token.",
)
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=8420,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Every request must bring the token in this file; SM_SERVE_TOKEN does the same.",
)
@pass_host
def command(host: Host, address: str, port: int, token_file: Path | None) -> None:
    """Answer HTTP requests, until SIGTERM or Ctrl-C; docs/HTTP.md has the endpoints.

    Nothing depends on it: sessions, hooks and commands work as well without it.
    """
    from sm.cli.root import version
    from sm.server import listening
    from sm.session.caller import identify

    identify(host.root, os.environ).check_may_serve()
    token = listening.token(token_file, os.environ)
    with listening.listen(address, port, protected=bool(token)) as listener:
        from sm.server.app import serve
        from sm.server.guard import Rules

        click.echo(f"listening on {listening.url(address, listener.getsockname()[1])}")
        rules = Rules(token, listening.is_loopback(listener))
        serve(host.root, version(), listener, rules)
