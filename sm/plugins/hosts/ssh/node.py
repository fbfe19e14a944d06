"""The machines that the configuration reaches by ssh."""

from __future__ import annotations

from sm.base.errors import UsageError
from sm.base.nearest import advise
from sm.config.schema import Config, MachineSettings
from sm.config.shapes import read_section
from sm.plugins.hosts.settings import Hosts
from sm.plugins.hosts.ssh.client import SshNode
from sm.store.paths import Root


def list_nodes(config: MachineSettings) -> list[SshNode]:
    """Return those of the machine and of its projects, in the order of the configuration.

    A host of the machine is one of each project, unless that says another thing of it.
    """
    root = Root(config.state_root)
    hosts = dict(read_section(config, Hosts).ssh)
    for project in config.projects if isinstance(config, Config) else ():
        hosts |= read_section(project, Hosts).ssh
    return [SshNode(root, name, host) for name, host in hosts.items()]


def find_node(config: MachineSettings, name: str) -> SshNode:
    """Return the one of that name.

    Raises:
        UsageError: there is none.

    """
    nodes = {node.name: node for node in list_nodes(config)}
    if name not in nodes:
        raise UsageError(f"no host '{name}': {advise(name, list(nodes), 'see sm host list')}")
    return nodes[name]
