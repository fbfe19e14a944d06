"""The event that says what a session has used by its end. Pure."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from sm.base.decoding import decode
from sm.plugins.cost.display import tell_cost
from sm.plugins.cost.ledger.sums import Sum

NAME = "cost"


class Spent(Struct, frozen=True):
    """Its text: what the issue has used so far, or the session without one, by kind of agent."""

    project: str
    issue: int
    by_agent: list[Sum]


def encode(spent: Spent) -> str:
    """The text of the event."""
    return msgspec.json.encode(spent).decode()


def tell(text: str) -> str:
    """Return the words for it."""
    try:
        spent = decode(text, Spent)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return f"{NAME}: {text}"  # of another version
    return f"cost: {tell_cost(spent.by_agent)}"
