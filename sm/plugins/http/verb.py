"""`sm serve`: the same operations over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.base.errors import UsageError
from sm.base.output import say
from sm.cli.options import pass_machine
from sm.plugins.http.options import listening, listening_options

if TYPE_CHECKING:
    import socket

    from sm.plugins.http.sites import Site
    from sm.plugins.http.webhooks import Receiver
    from sm.sessions.machine import Machine


@click.command("serve")
@listening_options(port=8420)
@click.option("--open", "opened", is_flag=True, help="Print a link by which one browser may act.")
@pass_machine
def command(
    machine: Machine, address: str, port: int, token_file: Path | None, opened: bool
) -> None:
    """Answer HTTP requests until SIGTERM or Ctrl-C; docs/HTTP.md lists the endpoints.

    At / is a page with what needs you and all sessions: docs/PAGE.md. Whoever may call the server
    may read it; to answer and to approve there a browser needs the link that --open prints. It
    works once.

    Nothing depends on it: sessions, hooks and commands work without it. If a project has a secret
    for webhooks, it also takes the webhooks of its forge: docs/FORGES.md.
    """
    from sm.cli.root import version
    from sm.plugins.http.app import load_added, serve
    from sm.plugins.http.sites import load_sites

    # All that before it says that it listens: scripts wait half a second.
    load_added()
    sites = load_sites()
    receivers = _make_receivers(machine)
    with listening(machine, address, port, token_file) as (listener, rules):
        if opened and not rules.loopback:
            raise UsageError("--open is for a browser on this machine: leave out --host")
        key = _print_link(listener, sites) if opened else ""
        serve(machine, version(), listener, rules, receivers, key)


def _print_link(listener: socket.socket, sites: list[Site]) -> str:
    """Print the link, and return the key in it.

    Raises:
        UsageError: no plugin offers anything to a browser.

    """
    from sm.base.nonce import make_nonce
    from sm.plugins.http.listening import format_url

    door = next((site.door for site in sites if site.door), "")
    if not door:
        raise UsageError("no plugin offers a page to a browser: leave --open out")
    key = make_nonce(32)
    host, port = listener.getsockname()[:2]
    say(f"open {format_url(host, port)}{door}{key}")
    return key


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
