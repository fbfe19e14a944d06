"""`sm serve`: the operations of sm over HTTP."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from sm.base import plugin
from sm.base.errors import UsageError
from sm.cli.options import load_machine
from sm.web.options import listening_options

if TYPE_CHECKING:
    from sm.plugins.http.webhooks import Receiver
    from sm.sessions.machine import Machine


@click.command("serve")
@listening_options(port=8420)
@click.option(
    "--read-token-file",
    "readers_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Each line of this file is a token that only reads.",
)
@click.option(
    "--socket",
    "path",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Listen at this Unix socket instead of a port: only you can open it, and need no token.",
)
@click.option(
    "--public-url",
    metavar="URL",
    default="",
    help="Where a TLS proxy on this machine offers it, such as https://sm.example.org: browsers "
    "elsewhere may log in, and nobody reads without a login or a token.",
)
@click.option("--open", "opened", is_flag=True, help="Print a link by which one browser may act.")
@click.option(
    "--open-read-only", "only_reads", is_flag=True, help="Print a link by which it only reads."
)
@click.pass_context
def command(
    ctx: click.Context,
    address: str,
    port: int,
    token_file: Path | None,
    readers_file: Path | None,
    path: Path | None,
    public_url: str,
    opened: bool,
    only_reads: bool,
) -> None:
    """Answer HTTP requests until SIGTERM or Ctrl-C; docs/HTTP.md lists the endpoints.

    At / is a page with what needs you and all sessions: docs/PAGE.md. Whoever may call the server
    may read it; to answer and to approve there a browser needs the link that --open prints. It
    works once.

    Nothing depends on it: sessions, hooks and commands work without it. If a project has a secret
    for webhooks, it also takes the webhooks of its forge: docs/FORGES.md.
    """
    from sm.base.version import version
    from sm.plugins.http.app import load_added, serve
    from sm.plugins.http.entry import ListeningPlace, print_link, serving
    from sm.web.sites import load_sites

    if opened and only_reads:
        raise UsageError("--open and --open-read-only exclude each other")
    if path and any(is_given(ctx, name) for name in ("address", "port")):
        raise UsageError("--socket stands for a port: leave out --host and --port")
    machine = load_machine(ctx)
    # All that before it says that it listens: scripts wait half a second.
    load_added()
    sites = load_sites()
    receivers = _make_receivers(machine)
    where = path and path.absolute()
    entry = ListeningPlace(address, port, where, token_file, readers_file, public_url)
    with serving(machine, entry) as (listener, rules), _keeping_services(machine):
        key = print_link(listener, rules, sites) if opened or only_reads else ""
        serve(machine, version(), listener, rules, receivers, key, key_reads=only_reads)


@contextlib.contextmanager
def _keeping_services(machine: Machine) -> Iterator[None]:
    """Look after the services of plugins meanwhile: no dev-poll need run beside a server."""
    if machine.source is None or not plugin.list_parts("services"):
        yield
        return
    from sm.helper.services import keep_services

    over = threading.Event()
    keeping = threading.Thread(
        target=keep_services, args=(machine.root, machine.source, over), daemon=True
    )
    keeping.start()
    try:
        yield
    finally:
        over.set()


def is_given(ctx: click.Context, name: str) -> bool:
    """Say whether the option stands on the command line."""
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _make_receivers(machine: Machine) -> dict[str, Receiver]:
    """Make the receivers of webhooks, by project. The web is loaded only if there is a secret."""
    if machine.source is None:
        return {}
    from sm.config.load import load_any

    config = load_any(machine.source, os.environ, Path.cwd())
    if not any(project.forge.has_webhooks for project in config.projects):
        return {}
    from sm.plugins.http.webhooks import make_receivers

    return make_receivers(config)
