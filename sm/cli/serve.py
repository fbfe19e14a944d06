"""`sm serve`: the same operations over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.cli.listening import listening, listening_options
from sm.cli.options import pass_host

if TYPE_CHECKING:
    from sm.sessions.machine import Host


@click.command("serve")
@listening_options(port=8420)
@pass_host
def command(host: Host, address: str, port: int, token_file: Path | None) -> None:
    """Answer HTTP requests, until SIGTERM or Ctrl-C; docs/HTTP.md has the endpoints.

    Nothing depends on it: sessions, hooks and commands work as well without it.
    """
    from sm.cli.root import version

    with listening(host, address, port, token_file) as (listener, rules):
        from sm.server.app import serve

        serve(host, version(), listener, rules)
