"""Compares what a client itself says that it has cost with our prices of the same requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from sm.adapters.agent.spending import Tokens
from sm.plugins.cost.database import COUNTS
from sm.plugins.cost.joining import fold
from sm.plugins.cost.ledger import BILLIONTHS, Ledger, Own

LIMIT = 0.02
"""A difference above that is told."""
REQUESTS = f"""
    SELECT model, sum(price), sum(price IS NULL), {", ".join(f"sum({one})" for one in COUNTS)}
    FROM requests WHERE context = ? AND at >= ? AND at <= ? AND certainty < 2 GROUP BY model
"""  # noqa: S608 - names of ours


class Compared(Struct, frozen=True):
    """Requests to one model, in dollars: by our prices, and as the client says."""

    model: str
    ours: float
    own: float

    @property
    def difference(self) -> float:
        """How much more the client says, as a part of our price."""
        return self.own / self.ours - 1 if self.ours else 0.0


def compare(ledger: Ledger, since: float) -> list[Compared]:
    """Both sums for each model, of what was accounted for since then.

    Only requests count of which both know the same tokens: else the sums would differ for another
    reason than the price.
    """
    found = [pair for own in ledger.list_own(since) for pair in _pair(ledger, own)]
    return list(_add_up(found))


def _pair(ledger: Ledger, own: Own) -> Iterator[Compared]:
    ours: dict[str, tuple[int, Tokens]] = {}
    rows = ledger.connection.execute(REQUESTS, (own.context, own.begun, own.at))
    for model, price, unpriced, *counts in rows:
        if fold(model) in ours or unpriced:  # a fast one beside a usual one has another price
            ours[fold(model)] = (0, Tokens(-1))
        else:
            ours[fold(model)] = (price, Tokens(*counts))
    for model, figure in own.models.items():
        price, tokens = ours.get(fold(model), (0, Tokens(-1)))
        if figure.price and price and tokens == figure.tokens:
            yield Compared(fold(model), price / BILLIONTHS, figure.price)


def _add_up(found: Iterable[Compared]) -> Iterator[Compared]:
    sums: dict[str, Compared] = {}
    for one in found:
        known = sums.get(one.model, Compared(one.model, 0.0, 0.0))
        sums[one.model] = Compared(one.model, known.ours + one.ours, known.own + one.own)
    yield from sums.values()
