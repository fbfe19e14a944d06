"""`sm serve`: the same operations over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.cli.options import pass_machine
from sm.plugins.http.options import listening, listening_options

if TYPE_CHECKING:
    from sm.plugins.http.webhooks import Receiver
    from sm.sessions.machine import Machine


@click.command("serve")
@listening_options(port=8420)
@pass_machine
def command(machine: Machine, address: str, port: int, token_file: Path | None) -> None:
    """Answer HTTP requests until SIGTERM or Ctrl-C; docs/HTTP.md lists the endpoints.

    Nothing depends on it: sessions, hooks and commands work without it. If a project has a secret
    for webhooks, it also takes the webhooks of its forge: docs/FORGES.md.
    """
    from sm.cli.root import version
    from sm.plugins.http.app import load_added, serve

    # All that before it says that it listens: scripts wait half a second.
    load_added()
    receivers = _make_receivers(machine)
    with listening(machine, address, port, token_file) as (listener, rules):
        serve(machine, version(), listener, rules, receivers)


def _make_receivers(machine: Machine) -> dict[str, Receiver]:
    """What takes webhooks, by project. The web is loaded for it only if there is a secret."""
    if machine.source is None:
        return {}
    from sm.config.load import load_any

    config = load_any(machine.source, os.environ, Path.cwd())
    if not any(project.forge.has_webhooks for project in config.projects):
        return {}
    from sm.plugins.http.webhooks import make_receivers

    return make_receivers(config)
