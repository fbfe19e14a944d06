"""Costs as agent CLIs say them, compared with our prices of the same requests.

A client accounts for a context as a whole, for each model. Only where both know the same tokens it
is about the same requests: else the sums would differ for another reason than the price. What was
found is kept, and looked at again once an entry or an account of the context has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.entries import BILLIONTHS, CostLedger, Own
from sm.plugins.cost.ledger.reconciliation import fold
from sm.plugins.cost.ledger.records.record import Tokens
from sm.store.sqlite import transaction

LIMIT = 0.02
"""A difference above that is told."""
DUE = "SELECT context FROM to_compare"
DONE = "DELETE FROM to_compare WHERE context = ?"
FORGET = "DELETE FROM compared WHERE context = ?"
REQUESTS = f"""
    SELECT model, count(*), sum(price), sum(price IS NULL), min(day), max(day),
        min(project), min(issue), min(agent),
        max(project) = min(project) AND max(issue) = min(issue), max(agent) = min(agent),
        {", ".join(f"sum({one})" for one in COUNTS)}
    FROM requests WHERE context = ? AND at >= ? AND at <= ? AND certainty < 2 GROUP BY model
"""  # noqa: S608 - names of ours
KEEP = "INSERT INTO compared VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
BY_MODEL = """
    SELECT model, sum(ours), sum(price) FROM compared
    WHERE at >= ? AND ours > 0 AND price > 0 GROUP BY model ORDER BY model
"""
SUMMED = "sum(requests), sum(price), sum(iif(ours IS NULL, 0, price)), sum(ours)"


class PriceComparison(Struct, frozen=True):
    """Requests to one model, in dollars: by our prices, and as the client says."""

    model: str
    ours: float
    own: float

    @property
    def difference(self) -> float:
        """The client's excess, as a part of our price."""
        return self.own / self.ours - 1 if self.ours else 0.0


class ByClient(Struct, frozen=True):
    """What clients say themselves that so many `requests` have cost, in dollars.

    Of those that have a list price, too, they say `compared`, and `ours` is that list price.
    """

    requests: int
    price: float
    compared: float
    ours: float


def compare(ledger: CostLedger, since: float) -> list[PriceComparison]:
    """Both sums for each model, of what was accounted for since then."""
    refresh(ledger)
    sums: dict[str, PriceComparison] = {}
    for name, ours, own in ledger.connection.execute(BY_MODEL, (since,)):
        model = fold(name)
        known = sums.get(model, PriceComparison(model, 0.0, 0.0))
        sums[model] = PriceComparison(
            model, known.ours + ours / BILLIONTHS, known.own + own / BILLIONTHS
        )
    return list(sums.values())


def read_by_client(
    ledger: CostLedger, columns: Sequence[str], since: str, project: str
) -> dict[tuple[str | int, ...], ByClient]:
    """Read what clients say, for each value of the columns, of requests from a day on.

    What belongs to several days or kinds of agents is left out of sums by these.
    """
    refresh(ledger)
    names = ", ".join(_COLUMNS.get(column, column) for column in columns)
    whole = "".join(f" AND {_WHOLE[column]}" for column in columns if column in _WHOLE)
    rows = ledger.connection.execute(
        f"SELECT {SUMMED}, {names} FROM compared "  # noqa: S608 - names of ours
        f"WHERE first_day >= ? AND ? IN ('', project){whole} GROUP BY {names}",
        (since, project),
    )
    return {
        tuple(group): ByClient(requests, *((one or 0) / BILLIONTHS for one in (price, same, ours)))
        for requests, price, same, ours, *group in rows
    }


_COLUMNS = {"day": "first_day"}
_WHOLE = {"day": "first_day = last_day", "agent": "agent != ''"}


def refresh(ledger: CostLedger) -> None:
    """Compare the contexts of which something has changed."""
    if not ledger.connection.execute(f"{DUE} LIMIT 1").fetchone():
        return
    with transaction(ledger.connection):
        for (context,) in ledger.connection.execute(DUE).fetchall():
            ledger.connection.execute(FORGET, (context,))
            if own := ledger.find_own(context):
                ledger.connection.executemany(KEEP, _pair(ledger, own))
            ledger.connection.execute(DONE, (context,))


def _pair(ledger: CostLedger, own: Own) -> Iterator[tuple[str | float | None, ...]]:
    """The rows of a context: what the client says of a model, beside our price."""
    rows = ledger.connection.execute(REQUESTS, (own.context, own.begun, own.at)).fetchall()
    names = [fold(row[0]) for row in rows]
    said = {fold(model): figure for model, figure in own.models.items()}
    for model, requests, ours, unpriced, first, last, project, issue, agent, *rest in rows:
        is_of_one, is_by_one, *counts = rest
        figure = said.get(fold(model))
        if (
            figure is not None
            and figure.price is not None
            and figure.tokens == Tokens(*counts)
            and names.count(fold(model)) == 1  # a fast one beside a usual one has another price
            and is_of_one
        ):
            yield (
                *(own.context, model, own.at, first, last, project, issue),
                agent if is_by_one else "",
                requests,
                round(figure.price * BILLIONTHS),
                None if unpriced else ours,
            )
