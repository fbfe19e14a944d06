"""Sessions on other machines: a whole `sm` runs there, and is reached by ssh."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    sections={"hosts": "sm.plugins.hosts.settings:Hosts"},
    runners={"ssh": "sm.plugins.hosts.ssh.runner:RUNNER"},
    verbs={
        "host": Verb(
            "sm.plugins.hosts.verb:command",
            "Add, list and check other machines on which sessions run.",
            after="doctor",
        ),
    },
)
