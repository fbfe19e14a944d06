"""The prices that were read on the providers' own pages, and when. A table; pure.

The ledger takes its prices from genai-prices, which does not say when each was read. This says of
the models that agents use whether somebody has compared them, and a test holds both against one
another. Prices are in dollars for a million tokens: input, output, read from the cache, written to
it for five minutes, for an hour; None where the page that could be had does not say.

Whoever reads a page anew changes the rates and the day, never the day alone.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

OLD = datetime.timedelta(days=90)
"""How old a price may be before it is said."""
READ = datetime.date(2026, 11, 29)
"""When all of these were read. What could be had are copies of the pages that are not dated."""
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


class Listed(Struct, frozen=True):
    """What a provider's page says of a model, and when that was read."""

    model: str
    rates: Rates
    source: str
    read: datetime.date = READ


_OPUS = Rates(5, 25, 0.5, 6.25, 10)
_SONNET = Rates(3, 15, 0.3, 3.75, 6)

LISTED = (
    Listed("claude-fable-5-1", Rates(10, 50, 0.25, 12.5, 20), PRICING),
    Listed("claude-fable-5", Rates(10, 50, 1, 12.5, 20), PRICING),
    Listed("claude-opus-5-5", Rates(4, 20, 0.2, 5, 8), f"{CLAUDE}/models/opus-5-5/overview"),
    Listed("claude-opus-5", _OPUS, PRICING),
    Listed("claude-opus-4-8", _OPUS, PRICING),
    Listed("claude-opus-4-7", _OPUS, PRICING),
    Listed("claude-opus-4-6", _OPUS, PRICING),
    Listed("claude-opus-4-5", _OPUS, PRICING),
    Listed("claude-opus-4-1", Rates(15, 75, 1.5, 18.75, 30), PRICING),
    Listed("claude-sonnet-5-5", Rates(2, 10), f"{CLAUDE}/models/opus-5/whats-new-opus-5"),
    Listed("claude-sonnet-5", Rates(2, 10), f"{CLAUDE}/models/opus-5-5/overview"),
    Listed("claude-sonnet-4-6", _SONNET, PRICING),
    Listed("claude-sonnet-4-5", _SONNET, PRICING),
    Listed("claude-haiku-5-5", Rates(0.1, 0.5), f"{CLAUDE}/models/opus-5/whats-new-opus-5"),
    Listed("claude-haiku-4-5", Rates(1, 5, 0.1, 1.25, 2), PRICING),
    Listed("gpt-5.6-sol", Rates(4, 20, 0.4), f"{OPENAI}/models/gpt-5.6-sol"),
    Listed("gpt-5-codex", Rates(1.25, 10, 0.125), f"{OPENAI}/models/gpt-5-codex"),
)
"""By provider, the newest first."""
GEOGRAPHY = f"{CLAUDE}/build-with-claude/data-residency"
"""Says that a computation within the United States costs 1.1 times as much; read on `READ`."""


class Proof(Struct, frozen=True):
    """How a price is known: by a page that was read then, but for the rates that are `unproven`."""

    source: str = ""
    read: datetime.date | None = None
    unproven: tuple[str, ...] = Rates.__struct_fields__

    def is_old(self, today: datetime.date) -> bool:
        """Whether it was read so long ago that it may have changed since."""
        return self.read is not None and today - self.read > OLD


def find_proof(model: str, listed: Sequence[Listed] = LISTED) -> Proof:
    """How the price of a model is known, as the ledger calls it; an empty one if it is not."""
    name, _, kind = model.partition("[")
    name = name.rstrip()
    for one in listed if not kind.startswith("fast") else ():
        if name == one.model or _is_day(name.removeprefix(one.model)):
            rates = Rates.__struct_fields__
            unproven = tuple(rate for rate in rates if getattr(one.rates, rate) is None)
            return Proof(one.source, one.read, unproven)
    return Proof()


def _is_day(rest: str) -> bool:
    """Whether that is a day as at the end of a model's name."""
    return len(rest) > 8 and rest[0] in "-@" and rest[1:].replace("-", "").isdecimal()


def list_notes(models: Iterable[str], today: datetime.date) -> Iterator[str]:
    """Say of each price that was read long ago when that was."""
    for model in models:
        if (proof := find_proof(model)).is_old(today):
            yield f"the price of {model} was read on {proof.read}: it may have changed since"
