"""Sums as a table, with what they leave out below it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sm.adapters.agent.spending import Tokens
from sm.plugins.cost.budget.amount import shorten_count
from sm.plugins.cost.sums import By, Sum

HEADERS = ("Requests", "Input", "Cache read", "Cache written", "Output", "Cost")
GAP = "  "
UNKNOWN = "unknown"
WITHOUT = "no issue"


def list_lines(by: By, sums: Sequence[Sum], total: Sum, width: int | None) -> Iterator[str]:
    """The table; names are cut so that it is not wider than `width`, if that is given."""
    from sm.cli.columns import fit

    rows: list[tuple[str, ...]] = [(by.capitalize(), *HEADERS)]
    rows += [(name_sum(by, one), *_list_cells(one)) for one in sums]
    if len(sums) > 1:
        rows.append(("Total", *_list_cells(total)))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    if width:
        widths[0] = min(widths[0], max(6, width - sum(widths[1:]) - len(GAP) * (len(widths) - 1)))
    for name, *cells in rows:
        padded = (cell.rjust(wide) for cell, wide in zip(cells, widths[1:], strict=True))
        yield GAP.join((fit(name, widths[0]).ljust(widths[0]), *padded)).rstrip()


def name_sum(by: By, one: Sum) -> str:
    """What the sum is of."""
    if by is By.ISSUE:
        return f"{one.name}#{one.issue}" if one.issue else WITHOUT
    return one.name or (WITHOUT if by is By.PROJECT else UNKNOWN)


def _list_cells(one: Sum) -> tuple[str, ...]:
    tokens, bound = one.tokens, "" if one.is_complete else "≥"
    written = tokens.cache_write_5m + tokens.cache_write_1h
    counts = (tokens.input, tokens.cache_read, written, tokens.output)
    return (
        f"{one.requests + one.unknown:,}",
        *(f"{bound}{shorten_count(count)}" for count in counts),
        format_price(one),
    )


def format_price(one: Sum) -> str:
    """`$1.20`, `≥$1.20` if there is more to it, `≈$1.20` if a subscription has paid it."""
    if one.requests == one.unpriced and (one.requests or one.unknown):
        return UNKNOWN
    sign = ("≈" if one.is_on_plan else "") + ("" if one.is_priced else "≥")
    if 0 < one.price < 0.01:
        return f"{sign}${one.price:.4f}"
    return f"{sign}${one.price:,.2f}"


def list_notes(total: Sum) -> Iterator[str]:
    """What the figures leave out, and what they mean."""
    if total.unknown:
        yield f"≥: what {_count(total.unknown)} used is in no record (docs/COST.md)"
    if total.at_least:
        yield f"≥: the answer to {_count(total.at_least)} was cut off"
    if total.unpriced:
        yield f"≥: {_count(total.unpriced)} without a known price cost more"
    if total.is_on_plan:
        yield "≈: list price of what a subscription has paid for"


def _count(number: int) -> str:
    return f"{number:,} request{'' if number == 1 else 's'}"


CSV_HEADER = (
    *("project", "issue", "requests"),
    *Tokens.__struct_fields__,
    *("price", "currency", "unpriced", "at_least", "unknown", "is_on_plan"),
)


def list_csv_rows(by: By, sums: Sequence[Sum]) -> Iterator[tuple[object, ...]]:
    """The sums for another program: a header, and a row each."""
    first = CSV_HEADER if by is By.ISSUE else (str(by), *CSV_HEADER[2:])
    yield first
    for one in sums:
        group = (one.name, one.issue) if by is By.ISSUE else (one.name,)
        counts = tuple(getattr(one.tokens, name) for name in Tokens.__struct_fields__)
        price = (f"{one.price:.9f}", one.currency, one.unpriced, one.at_least, one.unknown)
        yield (*group, one.requests, *counts, *price, int(one.is_on_plan))
