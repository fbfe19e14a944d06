"""Plugin of `sm doctor`: what is wrong with the installation, and what to do."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "doctor": Verb(
            "sm.plugins.doctor.verb:command",
            "Look at the whole installation and say what to do.",
            after="config",
        ),
    },
)
