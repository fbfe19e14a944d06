"""Costs of agents: a ledger of each request to a model."""

from __future__ import annotations

from sm.base.plugin import Plugin, Verb

PLUGIN = Plugin(
    sections={
        "cost": "sm.plugins.cost.settings:CostSection",
        "budget": "sm.plugins.cost.budget.settings:Budget",
    },
    verbs={
        "cost": Verb(
            "sm.plugins.cost.verb:command",
            "Show what agents have used, and what it cost.",
            "health",
        ),
        "budget": Verb(
            "sm.plugins.cost.budget_verb:command",
            "Show what agents may use, and raise it.",
            "cost",
        ),
        "ledger": Verb(
            "sm.plugins.cost.sync.node:command",
            "Exchange what agents have used with another installation.",
            "budget",
            hidden=True,
        ),
    },
    checks={
        "ledger": "sm.plugins.cost.checks:LEDGER",
        "budget": "sm.plugins.cost.checks:BUDGET",
        "telemetry": "sm.plugins.cost.checks:TELEMETRY",
    },
    files={"ledger": "sm.plugins.cost.settings:list_ledger"},
    events={
        "cost": "sm.plugins.cost.display:tell_spent",
        "budget-changed": "sm.plugins.cost.display:tell_raise",
    },
    routes={"cost": "sm.plugins.cost.route:ENDPOINT"},
    ticks={
        "cost": "sm.plugins.cost.tick:LISTENER",
        "nodes": "sm.plugins.cost.sync.tick:LISTENER",
    },
    followers={"cost": "sm.plugins.cost.follower:FOLLOWER"},
    figures={"cost": "sm.plugins.cost.report:FIGURES"},
    meters={"budget": "sm.plugins.cost.budget.meter:METER"},
    variables={"telemetry": "sm.plugins.cost.ledger.telemetry:make_variables"},
)
