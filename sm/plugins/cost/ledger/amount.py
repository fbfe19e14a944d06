"""Amounts of money, tokens and requests: as people write them, and as they read them. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from functools import cache

from msgspec import Struct

from sm.base.text import format_count, pluralise

EXPECTED = "Expected an amount such as $10, 10 USD or 2M tokens"
FORM = re.compile(
    r"(?P<sign>\$)?\s*(?P<number>[0-9][0-9_]*(?:\.[0-9]+)?)(?P<size>[kMG]?)\s*(?P<unit>USD|tokens?)?",
    re.ASCII,
)
SIZES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
LARGEST = 10**18
"""Amount that is a mistake, of any unit; sums of it still fit into SQLite's integers."""


class AmountUnit(StrEnum):
    """Unit of an amount. Money is in billionths of a dollar, as in the ledger."""

    USD = "USD"
    TOKENS = "tokens"


SCALE = {AmountUnit.USD: 10**9, AmountUnit.TOKENS: 1}


class Amount(Struct, frozen=True):
    """A number of a unit."""

    unit: AmountUnit
    count: int


@cache
def parse(text: str, default: AmountUnit | None = None) -> Amount:
    """Read `$10`, `10.50 USD`, `2M tokens`; with a `default` also `10` and `2M`.

    Raises:
        ValueError: it is none of these, or nothing.

    """
    found = FORM.fullmatch(text.strip())
    unit = _find_unit(found, default) if found else None
    if found is None or unit is None:
        raise ValueError(f"{EXPECTED}, got {text!r}")
    number = Decimal(found["number"].replace("_", "")) * SIZES[found["size"]] * SCALE[unit]
    if not 1 <= number < LARGEST:
        raise ValueError(f"{EXPECTED} above nothing, got {text!r}")
    return Amount(unit, int(number))


def _find_unit(found: re.Match[str], default: AmountUnit | None) -> AmountUnit | None:
    """The unit that it has; None if it has two, or none."""
    named = (found["unit"] or "").removesuffix("s")
    if found["sign"]:
        return AmountUnit.USD if named != "token" else None
    return {"USD": AmountUnit.USD, "token": AmountUnit.TOKENS}.get(named, default)


def show(unit: AmountUnit, count: int) -> str:
    """`$8.20`, `1.2M tokens`: for people; programs get all the digits."""
    sign, count = ("-", -count) if count < 0 else ("", count)
    if unit is AmountUnit.TOKENS:
        return f"{sign}{shorten_count(count)} {pluralise(count, 'token')}"
    return f"{sign}{show_dollars(count / SCALE[AmountUnit.USD])}"


def spell(unit: AmountUnit, count: int) -> str:
    """Write `5`, `2.5M`: as a person types it, without its unit."""
    scales = SIZES if unit is AmountUnit.TOKENS else {"": SCALE[unit]}
    fitting = [one for one in scales if scales[one] <= count]
    letter = max(fitting, key=scales.__getitem__, default="")
    return f"{(Decimal(count) / scales[letter]).normalize():f}{letter}"


def find_round(count: int) -> int:
    """Return the next number above that is easily read: 1, 2, 2.5 or 5, and zeros."""
    size = int(f"1{'0' * (len(str(max(1, count))) - 1)}")
    steps = (size, 2 * size, size * 5 // 2, 5 * size, 10 * size)
    return next(step for step in steps if step >= count)


def show_dollars(dollars: float) -> str:
    """`$1,234.50`; below a cent `$0.0042`."""
    return f"${dollars:.4f}" if 0 < dollars < 0.01 else f"${dollars:,.2f}"


def show_requests(number: int) -> str:
    """`1 request`, `1,200 requests`."""
    return format_count(number, "request")


def shorten_count(count: int) -> str:
    """`999`, `1.2k`, `34.5M`."""
    for letter, size in reversed(SIZES.items()):
        if letter and count >= size:
            return f"{count / size:.1f}{letter}"
    return str(count)
