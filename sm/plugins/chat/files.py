"""Files that the tools for threads leave on a machine, for `sm uninstall`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from sm.plugins.chat.mcp import clients
from sm.sessions.machine import Machine
from sm.setup.uninstall import Remainder


def list_clients(_machine: Machine, env: Mapping[str, str]) -> Iterator[Remainder]:
    """List the entry of `sm mcp install` in each client that has one."""
    for client in clients.list_present(env):
        path = clients.find_configuration(client, env)
        if clients.is_installed(client, env):
            yield Remainder(
                f"tools for threads in {path}", remove=partial(clients.uninstall, client, env)
            )
