"""The prices by which the ledger counts, each with the page and the day on which it was read."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from sm.plugins.cost.ledger.prices import LISTED, Rates, find_proof, find_rates, name_source

HEADERS = ("Model", "Input", "Output", "Cache read", "Written 5m", "Written 1h", "Read on", "From")
UNKNOWN, UNPROVEN = "unknown", "unproven"


class Price(Struct, frozen=True):
    """What a model costs now, in dollars for a million tokens of a short prompt; None if unknown.

    `listed_by` is the library that says so. Its rates were compared with the page `source` on the
    day `read`, but for those that are `unproven`.
    """

    model: str
    rates: Rates | None
    listed_by: str
    source: str
    read: str
    unproven: tuple[str, ...]


def list_prices(models: Sequence[str]) -> list[Price]:
    """The prices of these models; without any, of those whose pages were read."""
    now, library = time.time(), name_source()
    found = []
    for model in filter(None, models or [one.model for one in LISTED]):
        proof = find_proof(model)
        rates = find_rates(model, now) if library else None
        read = str(proof.read) if proof.read else ""
        found.append(Price(model, rates, library, proof.source, read, proof.unproven))
    return found


def list_lines(prices: Sequence[Price]) -> list[str]:
    """Make a table of them. A rate that no page has shown is marked."""
    rows = [HEADERS, *map(_list_cells, prices)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADERS))]
    lines = []
    for name, *cells, read, source in rows:
        padded = (cell.rjust(wide) for cell, wide in zip(cells, widths[1:-2], strict=True))
        columns = (name.ljust(widths[0]), *padded, read.ljust(widths[-2]), source)
        lines.append("  ".join(columns).rstrip())
    return lines


def _list_cells(price: Price) -> tuple[str, ...]:
    names = Rates.__struct_fields__
    cells = []
    for name in names:
        rate = getattr(price.rates, name) if price.rates else None
        mark = "?" if name in price.unproven else ""
        cells.append(UNKNOWN if rate is None else f"${rate:g}{mark}")
    return (price.model, *cells, price.read or UNPROVEN, price.source or price.listed_by)
