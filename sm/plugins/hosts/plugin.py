"""Sessions on other machines: a whole `sm` runs there, and is reached by ssh or by Slurm."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    sections={
        "hosts": "sm.plugins.hosts.settings:Hosts",
        "slurm": "sm.plugins.hosts.slurm.settings:Slurm",
    },
    runners={
        "ssh": "sm.plugins.hosts.ssh.runner:RUNNER",
        "slurm": "sm.plugins.hosts.slurm.runner:RUNNER",
    },
    dispatchers={"hosts": "sm.plugins.hosts.places:DISPATCHER"},
    places={"hosts": "sm.plugins.hosts.places:PLACES"},
    files={"messages": "sm.plugins.hosts.messages.outbox:list_files"},
    checks={"slurm": "sm.plugins.hosts.slurm.check:CHECK"},
    verbs={
        "host": Verb(
            "sm.plugins.hosts.verb:command",
            "Add, list and check other machines on which sessions run.",
            after="doctor",
        ),
    },
)
