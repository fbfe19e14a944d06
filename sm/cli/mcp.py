"""`sm mcp`: the bridge as an MCP server, and its place in the clients' configurations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.cli.listening import listening, listening_options
from sm.cli.options import load_host, pass_host
from sm.cli.words import print_json
from sm.errors import UsageError
from sm.output import say, warn

if TYPE_CHECKING:
    from sm.mcp.clients import McpClient
    from sm.workflow.host import Host


@click.group(invoke_without_command=True)
@click.option("--http", "over_http", is_flag=True, help="Over HTTP, at /mcp, instead of stdio.")
@listening_options(port=8421)
@click.pass_context
def command(
    ctx: click.Context, over_http: bool, address: str, port: int, token_file: Path | None
) -> None:
    """Offer the handoffs of 'sm bridge' as MCP tools, over standard input and output.

    That is how MCP clients start it: 'sm mcp install' tells them to. With --http it answers until
    SIGTERM or Ctrl-C.
    """
    if ctx.invoked_subcommand:
        return
    host = load_host(ctx)
    if over_http:
        _serve_http(host, address, port, token_file)
    else:
        _serve_stdio(host)


def _serve_stdio(host: Host) -> None:
    from sm.cli.root import version
    from sm.session.caller import identify

    caller = identify(host.root, os.environ)
    if sys.stdin.isatty():
        warn("an MCP client is to write here; see 'sm mcp install'. Ctrl-D ends this")
    from sm.mcp import stdio
    from sm.mcp.server import Tools, server

    stdio.serve(server(Tools(host, caller), version()))


def _serve_http(host: Host, address: str, port: int, token_file: Path | None) -> None:
    from sm.cli.root import version
    from sm.mcp import http
    from sm.mcp.server import Tools, server
    from sm.session.caller import Caller

    with listening(host, address, port, token_file, path=http.PATH) as (listener, rules):
        tools = Tools(host, Caller())
        http.serve(server(tools, version(), leaves_calls=True), listener, rules)


clients_argument = click.argument(
    "names", metavar="[claude-code] [claude-desktop]", nargs=-1, type=click.STRING
)


@command.command()
@clients_argument
@click.option("--print", "only_print", is_flag=True, help="Print what to add, and change nothing.")
@pass_host
def install(host: Host, names: tuple[str, ...], only_print: bool) -> None:
    """Add the server to the configuration of these clients, or of those that you have.

    What else is there stays, and the file as it was before is kept beside it. Doing it again
    changes nothing.
    """
    from sm.mcp import clients

    if only_print:
        print_json(clients.printed(host, os.environ))
        return
    for client in _clients(names):
        say(clients.install(client, host, os.environ))


@command.command()
@clients_argument
def uninstall(names: tuple[str, ...]) -> None:
    """Take the server out of these configurations again."""
    from sm.mcp import clients

    for client in _clients(names):
        say(clients.uninstall(client, os.environ))


def _clients(names: tuple[str, ...]) -> tuple[McpClient, ...]:
    from sm.mcp import clients

    known = list(clients.McpClient)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown client '{name}': {' or '.join(known)}")
    if found := tuple(map(clients.McpClient, names)) or clients.present(os.environ):
        return found
    raise UsageError(
        f"neither {' nor '.join(known)} is here: name one nevertheless, or add what "
        "'sm mcp install --print' prints to the configuration of your client"
    )
