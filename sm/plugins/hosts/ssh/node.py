"""The machines that the configuration reaches by ssh."""

from __future__ import annotations

from sm.base.errors import UsageError
from sm.base.nearest import advise
from sm.config.schema import MachineSettings
from sm.config.shapes import read_section
from sm.plugins.hosts.settings import Hosts
from sm.plugins.hosts.ssh.asking import Node
from sm.store.paths import Root


def list_nodes(settings: MachineSettings) -> list[Node]:
    """Return them in the order of the configuration."""
    root = Root(settings.state_root)
    hosts = read_section(settings, Hosts).ssh
    return [Node(root, name, host) for name, host in hosts.items()]


def find_node(settings: MachineSettings, name: str) -> Node:
    """Return the one of that name.

    Raises:
        UsageError: there is none.

    """
    nodes = {node.name: node for node in list_nodes(settings)}
    if name not in nodes:
        raise UsageError(f"no host '{name}': {advise(name, list(nodes), 'see sm host list')}")
    return nodes[name]
