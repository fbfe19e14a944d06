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
    },
    checks={
        "ledger": "sm.plugins.cost.examine:CHECK",
        "budget": "sm.plugins.cost.budget.examine:CHECK",
    },
    files={"ledger": "sm.plugins.cost.files:list_ledger"},
    events={"budget-changed": "sm.plugins.cost.budget.words:tell_changed"},
    followers={"cost": "sm.plugins.cost.following:FOLLOWER"},
    meters={"budget": "sm.plugins.cost.budget.meter:METER"},
)
