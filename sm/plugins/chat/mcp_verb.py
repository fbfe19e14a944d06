"""`sm mcp`: the bridge as an MCP server, and its place in the clients' configurations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sm.base.errors import UsageError
from sm.base.output import say, say_lines, warn
from sm.cli.options import json_option, load_machine, pass_machine
from sm.cli.words import print_json
from sm.views.times import format_moment
from sm.web.options import listening, listening_options

if TYPE_CHECKING:
    from sm.plugins.chat.mcp.clients import McpClient
    from sm.sessions.machine import Machine


@click.group(invoke_without_command=True)
@click.option("--http", "over_http", is_flag=True, help="Over HTTP, at /mcp, instead of stdio.")
@listening_options(port=8421)
@click.option(
    "--public-url",
    metavar="URL",
    default="",
    help="Where a TLS proxy offers it to Claude.ai and other remote clients, such as "
    "https://sm.example.org: they ask you for permission by a page.",
)
@click.option(
    "--client-host",
    "client_hosts",
    metavar="HOST",
    multiple=True,
    help="Remote clients of this host may ask, besides claude.ai, claude.com and this machine.",
)
@click.pass_context
def command(
    ctx: click.Context,
    over_http: bool,
    address: str,
    port: int,
    token_file: Path | None,
    public_url: str,
    client_hosts: tuple[str, ...],
) -> None:
    """Offer the handoffs of 'sm bridge' as MCP tools, over standard input and output.

    That is how MCP clients start it: 'sm mcp install' tells them to. With --http it answers until
    SIGTERM or Ctrl-C.
    """
    if ctx.invoked_subcommand:
        return
    if (public_url or client_hosts) and not over_http:
        raise UsageError("--public-url and --client-host are for remote clients: add --http")
    if client_hosts and not public_url:
        raise UsageError("--client-host is for remote clients: add --public-url")
    machine = load_machine(ctx)
    if over_http:
        _serve_http(machine, address, port, token_file, public_url, client_hosts)
    else:
        _serve_stdio(machine)


def _serve_stdio(machine: Machine) -> None:
    from sm.base.version import version
    from sm.sessions.caller import identify

    caller = identify(machine.root, os.environ)
    if sys.stdin.isatty():
        warn("an MCP client is to write here; see 'sm mcp install'. Ctrl-D ends this")
    from sm.plugins.chat.mcp import stdio
    from sm.plugins.chat.mcp.server import Tools, make_server

    stdio.serve(make_server(Tools(machine, caller), version()))


def _serve_http(
    machine: Machine,
    address: str,
    port: int,
    token_file: Path | None,
    public_url: str,
    client_hosts: tuple[str, ...],
) -> None:
    from sm.base.version import version
    from sm.plugins.chat.mcp import http
    from sm.plugins.chat.mcp.server import Tools, make_server
    from sm.sessions.caller import Caller

    where = (address, port, token_file)
    with listening(machine, *where, path=http.PATH, public_url=public_url) as (listener, rules):
        remote = http.make_remote(_folder(machine), client_hosts) if rules.public else None
        if remote:
            say(f"remote clients use {rules.public}{http.PATH}; 'sm mcp secret' allows them")
        tools = make_server(Tools(machine, Caller()), version(), leaves_calls=True)
        http.serve(tools, listener, rules, remote)


def _folder(machine: Machine) -> Path:
    """Return the folder with the grants of remote clients."""
    return machine.settings.bridge_database.parent


clients_argument = click.argument(
    "names", metavar="[claude-code] [claude-desktop]", nargs=-1, type=click.STRING
)


@command.command()
@clients_argument
@click.option("--print", "only_print", is_flag=True, help="Print what to add, and change nothing.")
@pass_machine
def install(machine: Machine, names: tuple[str, ...], only_print: bool) -> None:
    """Add the server to the configuration of these clients, or of those that you have.

    What else is there stays, and the file as it was before is kept beside it. Doing it again
    changes nothing.
    """
    from sm.plugins.chat.mcp import clients

    if only_print:
        print_json(clients.format_entry(machine, os.environ))
        return
    for client in _clients(names):
        say(clients.install(client, machine, os.environ))


@command.command()
@clients_argument
def uninstall(names: tuple[str, ...]) -> None:
    """Take the server out of these configurations again."""
    from sm.plugins.chat.mcp import clients

    for client in _clients(names):
        say(clients.uninstall(client, os.environ))


def _clients(names: tuple[str, ...]) -> tuple[McpClient, ...]:
    from sm.plugins.chat.mcp import clients

    known = list(clients.McpClient)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown client '{name}': {' or '.join(known)}")
    if found := tuple(map(clients.McpClient, names)) or clients.list_present(os.environ):
        return found
    raise UsageError(
        f"neither {' nor '.join(known)} is here: name one nevertheless, or add what "
        "'sm mcp install --print' prints to the configuration of your client"
    )


@command.command("secret")
@click.option("--new", "renewed", is_flag=True, help="Replace it; what was allowed stays allowed.")
@pass_machine
def secret_command(machine: Machine, renewed: bool) -> None:
    """Print the secret by which you allow a remote client to use the tools.

    The page that asks you wants it. It is in a file of yours alone beside the handoffs, and one of
    your own may stand there as well.
    """
    from sm.plugins.chat.mcp import secret

    _check_is_person(machine)
    file = secret.locate(_folder(machine))
    say(secret.renew(file) if renewed else secret.read(file))


@command.command()
@json_option
@pass_machine
def grants(machine: Machine, as_json: bool) -> None:
    """List the remote clients that you have allowed to use the tools.

    A grant ends when it is revoked, or was not used for 90 days.
    """
    from sm.plugins.chat.mcp.grants import Grants

    found = [each.shown() for each in Grants(_folder(machine)).listed()]
    if as_json:
        print_json(found)
    elif found:
        say_lines(
            f"{each.id}  {each.name or '-'} at {each.host}, "
            f"since {format_moment(each.granted_at)}, "
            f"last used {format_moment(each.used_at)}"
            for each in found
        )
    else:
        say("no remote client is allowed", err=True)


@command.command()
@click.argument("ids", metavar="ID...", nargs=-1)
@click.option("--all", "all_of_them", is_flag=True, help="Each of them.")
@pass_machine
def revoke(machine: Machine, ids: tuple[str, ...], all_of_them: bool) -> None:
    """Take back what remote clients were allowed, at once; 'sm mcp grants' has the IDs."""
    from sm.plugins.chat.mcp.grants import Grants, find

    if bool(ids) == all_of_them:
        raise UsageError("which? name them as 'sm mcp grants' does, or give --all")
    _check_is_person(machine)
    known = Grants(_folder(machine))
    there = known.listed()
    meant = there if all_of_them else tuple(find(there, each) for each in ids)
    for each in known.revoke(*(each.id for each in meant)):
        say(f"revoked {each.id}, {each.name or each.host}")


def _check_is_person(machine: Machine) -> None:
    from sm.sessions.caller import identify

    identify(machine.root, os.environ).check_may_grant()
