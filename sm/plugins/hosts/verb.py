"""`sm host`: other machines on which sessions run."""

from __future__ import annotations

from pathlib import Path

import click

from sm.base.errors import SmError, UsageError
from sm.cli.invocation import Invocation
from sm.cli.options import load_any_config


@click.group("host")
def command() -> None:
    """Add, list, check and remove other machines on which sessions run.

    A whole sm runs there; docs/HOSTS.md says how to set one up.
    """


# What programs call


@command.command("link", hidden=True)
@click.argument("root", type=click.Path(path_type=Path))
@click.argument("name")
def link(root: Path, name: str) -> None:
    """Keep a channel open to a host, for all commands; a command that needs it starts it."""
    from sm.plugins.hosts.folder import open_folder
    from sm.plugins.hosts.ssh.link import serve
    from sm.store.paths import Root
    from sm.store.root_check import check_root

    serve(open_folder(check_root(Root(root)), name))


@command.command("serve", hidden=True)
@click.pass_context
def serve(ctx: click.Context) -> None:
    """Answer what comes on stdin, on a node; the other end of the channel starts it."""
    from sm.cli.root import version
    from sm.plugins.hosts.node.serve import Server

    invocation = ctx.ensure_object(Invocation)
    if invocation.again is None:
        raise UsageError("it is called by 'sm' alone")

    def find_folder(project: str) -> str:
        try:
            found = load_any_config(ctx).project(project)
        except SmError:
            return ""
        return str(found.repo) if found and found.repo.is_dir() else ""

    Server(invocation.again, find_folder, version()).serve()
