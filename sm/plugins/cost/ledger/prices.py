"""What requests cost, by the list prices of genai-prices, an import of 0.2 s.

Each entry keeps the price that it was given, and which version gave it. What has no price stays
without one, and is tried again with the next version.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import cache

from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.entries import BILLIONTHS, CURRENCY, Ledger
from sm.plugins.cost.ledger.price_list import Rates
from sm.store.sqlite import transaction

LIBRARY = "genai-prices"
PIECE = 5_000
"""Entries that are priced at once."""
FAST, US = "[fast]", "[us]"
"""What may be behind a model's name, beside a long context `[1m]`: a speed, or a place."""
IN_US = Decimal("1.1")
"""How much more tokens cost that were computed in the United States (`price_list.GEOGRAPHY`)."""
MOST = 10**15
"""A price beyond a million dollars is none: sums of it still fit into SQLite's integers."""
EACH = 1000
"""Tokens by which a rate is found: fewer than any tier begins with."""
RATES = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")

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
    from importlib.metadata import PackageNotFoundError, version  # 15 ms

    try:
        return f"{LIBRARY} {version(LIBRARY)}"
    except PackageNotFoundError:
        return ""


def find_price(model: str, at: float, counts: dict[str, int]) -> int | None:
    """What a request has cost, in billionths; None if it has no list price.

    Unlike the clients, the library counts cache reads and writes within the input.
    """
    written = counts["cache_write_5m"] + counts["cache_write_1h"]
    of_tokens = _ask(
        model,
        at,
        input_tokens=counts["input"] + counts["cache_read"] + written,
        output_tokens=counts["output"],
        cache_read_tokens=counts["cache_read"],
        cache_write_tokens=written,
        cache_write_1h_tokens=counts["cache_write_1h"],
    )
    of_searches = Decimal(0)
    if of_tokens is not None and counts["searches"]:
        of_searches = _ask(model, at, web_searches=counts["searches"]) or of_searches
    if of_tokens is None:
        return None
    price = int(((of_tokens + of_searches) * BILLIONTHS).to_integral_value())
    return price if price <= MOST else None


def _ask(model: str, at: float, **usage: int) -> Decimal | None:
    """The list price in dollars. Where a computation is made makes tokens cost more, not fees."""
    from genai_prices import Usage, calc_price

    name, is_fast = model.partition("[")[0].rstrip(), FAST in model
    try:
        found = calc_price(
            Usage(**usage),
            name,
            genai_request_timestamp=datetime.fromtimestamp(at, UTC),
            price_context={"speed": "fast"} if is_fast else None,
        )
    except (LookupError, ValueError, TypeError):  # an older library knows no speeds
        return None
    if is_fast and not any(
        one.when == {"speed": "fast"} for one in found.model.price_variants or ()
    ):
        return None
    factor = IN_US if US in model and "web_searches" not in usage else Decimal(1)
    return found.total_price * factor


def find_rates(model: str, at: float) -> Rates | None:
    """What the library says of a model, in dollars for a million tokens of a short prompt."""
    rates = list[float]()
    for count in RATES:
        counts = dict.fromkeys(COUNTS, 0) | {count: EACH}
        price = find_price(model, at, counts)
        if price is None:
            return None
        rates.append(round(price / BILLIONTHS / EACH * 10**6, 6))
    return Rates(*rates)
