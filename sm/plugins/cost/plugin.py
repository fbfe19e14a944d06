"""What agents cost: a ledger of each request to a model."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    sections={
        "cost": "sm.plugins.cost.settings:Cost",
        "budget": "sm.plugins.cost.budget.settings:Budget",
    },
    verbs={
        "cost": Verb(
            "sm.plugins.cost.verb:command",
            "Show what agents have used, and what it cost.",
            "health",
        ),
        "budget": Verb(
            "sm.plugins.cost.budget.verb:command",
            "Show what agents may use, and raise it.",
            "cost",
        ),
        "ledger": Verb(
            "sm.plugins.cost.nodes.verb:command",
            "Exchange what agents have used with another installation.",
            "budget",
            hidden=True,
        ),
    },
    checks={
        "ledger": "sm.plugins.cost.examine:CHECK",
        "budget": "sm.plugins.cost.budget.examine:CHECK",
        "telemetry": "sm.plugins.cost.telemetry.examine:CHECK",
    },
    files={"ledger": "sm.plugins.cost.files:list_ledger"},
    events={
        "cost": "sm.plugins.cost.event:tell",
        "budget-changed": "sm.plugins.cost.budget.words:tell_changed",
    },
    routes={"cost": "sm.plugins.cost.route:ENDPOINT"},
    ticks={
        "cost": "sm.plugins.cost.tick:LISTENER",
        "nodes": "sm.plugins.cost.nodes.tick:LISTENER",
    },
    followers={"cost": "sm.plugins.cost.following:FOLLOWER"},
    figures={"cost": "sm.plugins.cost.figures:FIGURES"},
    meters={"budget": "sm.plugins.cost.budget.meter:METER"},
    variables={"telemetry": "sm.plugins.cost.telemetry.starting:make_variables"},
)
