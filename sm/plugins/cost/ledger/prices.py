"""Prices of requests, by the list prices of genai-prices, an import of 0.2 s.

Each entry keeps the price that it was given, and which version gave it. What has no price stays
without one, and is tried again with the next version.

The library does not say when each of its prices was read. The table `LISTED` says of the models
that agents use what the providers' own pages say, and when somebody has read them; a test holds
both against one another. Its prices are in dollars for a million tokens: input, output, read from
the cache, written to it for five minutes, for an hour; None where the page that could be had does
not say. Whoever reads a page again changes the rates and the day, never the day alone.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache

from msgspec import Struct

from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.entries import BILLIONTHS, CURRENCY, CostLedger
from sm.store.sqlite import transaction

OLD = datetime.timedelta(days=90)
"""Age of a price from which on it is said."""
READ = datetime.date(2026, 11, 29)
"""Day on which all of these were read. Only copies of the pages without a date could be had."""
CLAUDE = "https://platform.claude.com/docs/en"
PRICING = f"{CLAUDE}/about-claude/pricing"
OPENAI = "https://developers.openai.com/api/docs"


class Rates(Struct, frozen=True):
    """Dollars for a million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write_5m: float | None = None
    cache_write_1h: float | None = None


class ListedPrice(Struct, frozen=True):
    """A price on a provider's page, and when that was read."""

    model: str
    rates: Rates
    source: str
    read: datetime.date = READ


_OPUS = Rates(5, 25, 0.5, 6.25, 10)
_SONNET = Rates(3, 15, 0.3, 3.75, 6)

LISTED = (
    ListedPrice("claude-fable-5-1", Rates(10, 50, 0.25, 12.5, 20), PRICING),
    ListedPrice("claude-fable-5", Rates(10, 50, 1, 12.5, 20), PRICING),
    ListedPrice("claude-opus-5-5", Rates(4, 20, 0.2, 5, 8), f"{CLAUDE}/models/opus-5-5/overview"),
    ListedPrice("claude-opus-5", _OPUS, PRICING),
    ListedPrice("claude-opus-4-8", _OPUS, PRICING),
    ListedPrice("claude-opus-4-7", _OPUS, PRICING),
    ListedPrice("claude-opus-4-6", _OPUS, PRICING),
    ListedPrice("claude-opus-4-5", _OPUS, PRICING),
    ListedPrice("claude-opus-4-1", Rates(15, 75, 1.5, 18.75, 30), PRICING),
    ListedPrice("claude-sonnet-5-5", Rates(2, 10), f"{CLAUDE}/models/opus-5/whats-new-opus-5"),
    ListedPrice("claude-sonnet-5", Rates(2, 10), f"{CLAUDE}/models/opus-5-5/overview"),
    ListedPrice("claude-sonnet-4-6", _SONNET, PRICING),
    ListedPrice("claude-sonnet-4-5", _SONNET, PRICING),
    ListedPrice("claude-haiku-5-5", Rates(0.1, 0.5), f"{CLAUDE}/models/opus-5/whats-new-opus-5"),
    ListedPrice("claude-haiku-4-5", Rates(1, 5, 0.1, 1.25, 2), PRICING),
    ListedPrice("gpt-5.6-sol", Rates(4, 20, 0.4), f"{OPENAI}/models/gpt-5.6-sol"),
    ListedPrice("gpt-5-codex", Rates(1.25, 10, 0.125), f"{OPENAI}/models/gpt-5-codex"),
)
"""Prices by provider, the newest first."""
GEOGRAPHY = f"{CLAUDE}/build-with-claude/data-residency"
"""Says that a computation within the United States costs 1.1 times as much; read on `READ`."""


class PriceProof(Struct, frozen=True):
    """Proof of a price: a page that was read then, but for the rates that are `unproven`."""

    source: str = ""
    read: datetime.date | None = None
    unproven: tuple[str, ...] = Rates.__struct_fields__

    def is_old(self, today: datetime.date) -> bool:
        """Whether it was read so long ago that it may have changed since."""
        return self.read is not None and today - self.read > OLD


def find_proof(model: str, listed: Sequence[ListedPrice] = LISTED) -> PriceProof:
    """Find the proof of a model's price, as the ledger calls it; an empty one if there is none."""
    name, _, kind = model.partition("[")
    name = name.rstrip()
    for one in listed if not kind.startswith("fast") else ():
        if name == one.model or _is_day(name.removeprefix(one.model)):
            rates = Rates.__struct_fields__
            unproven = tuple(rate for rate in rates if getattr(one.rates, rate) is None)
            return PriceProof(one.source, one.read, unproven)
    return PriceProof()


def _is_day(rest: str) -> bool:
    """Whether that is a day as at the end of a model's name."""
    return len(rest) > 8 and rest[0] in "-@" and rest[1:].replace("-", "").isdecimal()


def list_notes(models: Iterable[str], today: datetime.date) -> Iterator[str]:
    """Say of each price that was read long ago when that was."""
    for model in models:
        if (proof := find_proof(model)).is_old(today):
            yield f"the price of {model} was read on {proof.read}: it may have changed since"


LIBRARY = "genai-prices"
PIECE = 5_000
"""Entries that are priced at once."""
FAST, US = "[fast]", "[us]"
"""Marks behind a model's name, beside a long context `[1m]`: a speed, or a place."""
IN_US = Decimal("1.1")
"""Factor of the price of tokens that were computed in the United States (`GEOGRAPHY`)."""
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


def price_pending(ledger: CostLedger) -> None:
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
    """Find what a request has cost, in billionths; None if it has no list price.

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
            genai_request_timestamp=datetime.datetime.fromtimestamp(at, datetime.UTC),
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
    """Find the library's rates of a model, in dollars for a million tokens of a short prompt."""
    rates = list[float]()
    for count in RATES:
        counts = dict.fromkeys(COUNTS, 0) | {count: EACH}
        price = find_price(model, at, counts)
        if price is None:
            return None
        rates.append(round(price / BILLIONTHS / EACH * 10**6, 6))
    return Rates(*rates)


class Price(Struct, frozen=True):
    """Present price of a model, in dollars for a million tokens of a short prompt; None if unknown.

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
