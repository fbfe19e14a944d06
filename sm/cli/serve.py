"""`sm serve`: the same operations over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.cli.listening import listening, listening_options
from sm.cli.options import pass_machine

if TYPE_CHECKING:
    from sm.sessions.machine import Machine


@click.command("serve")
@listening_options(port=8420)
@pass_machine
def command(machine: Machine, address: str, port: int, token_file: Path | None) -> None:
    """Answer HTTP requests, until SIGTERM or Ctrl-C; docs/HTTP.md has the endpoints.

    Nothing depends on it: sessions, hooks and commands work as well without it.
    """
    from sm.cli.root import version

    with listening(machine, address, port, token_file) as (listener, rules):
        from sm.server.app import serve

        serve(machine, version(), listener, rules)
