"""What agents cost: a ledger of each request to a model."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    sections={"cost": "sm.plugins.cost.settings:Cost"},
    verbs={
        "cost": Verb(
            "sm.plugins.cost.verb:command",
            "Show what agents have used, and what it cost.",
            "health",
        )
    },
    checks={"ledger": "sm.plugins.cost.examine:CHECK"},
    files={"ledger": "sm.plugins.cost.files:list_ledger"},
    followers={"cost": "sm.plugins.cost.following:FOLLOWER"},
    variables={"telemetry": "sm.plugins.cost.telemetry:make_variables"},
)
