"""What requests cost, by the list prices of genai-prices, an import of 0.2 s.

Each entry keeps the price that it was given, and which version gave it. What has no price stays
without one, and is tried again with the next version.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from sm.plugins.cost.database import COUNTS
from sm.plugins.cost.ledger import Ledger
from sm.store.sqlite import transaction

LIBRARY = "genai-prices"
CURRENCY = "USD"
BILLIONTHS = Decimal(10**9)
PIECE = 5_000
"""Entries that are priced at once."""
LONG = re.compile(r"\[1m\]\Z")
"""What a client adds to a model's name for a long context: its price has no name of its own."""
UNLISTED = "[fast]"
"""What there is no list price of."""

NOBODY = "nobody"
"""Has been asked for a price without the library: it is known that there is none."""

PENDING = f"""
    SELECT key, at, model, {", ".join(COUNTS)} FROM requests
    WHERE price IS NULL AND certainty < 2 AND priced_by != ? LIMIT {PIECE}
"""  # noqa: S608 - names of ours
SET = "UPDATE requests SET price = ?, currency = ?, priced_by = ? WHERE key = ?"

GIVE_UP = "UPDATE requests SET priced_by = ? WHERE price IS NULL AND priced_by = ''"


def price_pending(ledger: Ledger) -> None:
    """Give each entry without a price one, if the installed prices have it and were not asked."""
    source = name_source()
    if not source:
        ledger.connection.execute(GIVE_UP, (NOBODY,))
    while source:
        with transaction(ledger.connection):
            rows = ledger.connection.execute(PENDING, (source,)).fetchall()
            for key, at, model, *counts in rows:
                price = find_price(model, at, dict(zip(COUNTS, counts, strict=True)))
                currency = "" if price is None else CURRENCY
                ledger.connection.execute(SET, (price, currency, source, key))
        if len(rows) < PIECE:
            return


@cache
def name_source() -> str:
    """The library and its version, which stands for the date of its prices; '' without it."""
    try:
        return f"{LIBRARY} {version(LIBRARY)}"
    except PackageNotFoundError:
        return ""


def find_price(model: str, at: float, counts: dict[str, int]) -> int | None:
    """What a request has cost, in billionths; None if it has no list price.

    Unlike the clients, the library counts cache reads and writes within the input.
    """
    if UNLISTED in model:
        return None
    from genai_prices import Usage, calc_price

    written = counts["cache_write_5m"] + counts["cache_write_1h"]
    usage = Usage(
        input_tokens=counts["input"] + counts["cache_read"] + written,
        output_tokens=counts["output"],
        cache_read_tokens=counts["cache_read"],
        cache_write_tokens=written,
        cache_write_1h_tokens=counts["cache_write_1h"],
        **({"web_searches": counts["searches"]} if counts["searches"] else {}),
    )
    try:
        when = datetime.fromtimestamp(at, UTC)
        found = calc_price(usage, LONG.sub("", model), genai_request_timestamp=when)
    except (LookupError, ValueError):
        return None
    return int((found.total_price * BILLIONTHS).to_integral_value())
