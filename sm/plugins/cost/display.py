"""Display of sums and prices: tables with notes below them, sentences, words of events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET, Struct, structs

from sm.base.decoder import decode
from sm.base.issue_id import IssueId
from sm.plugins.cost.ledger.amount import shorten_count, show_dollars, show_requests
from sm.plugins.cost.ledger.prices import Price, Rates
from sm.plugins.cost.ledger.records.record import Tokens
from sm.plugins.cost.ledger.sums import Sum, SumGroup, add_up

HEADERS = ("Requests", "Input", "Cache read", "Cache written", "Output", "Cost")
BY_CLIENT = "Client"
"""The column of what agent CLIs say themselves, if any does."""
GAP = "  "
UNKNOWN = "unknown"
WITHOUT = "no issue"
HERE = "this machine"


UNNAMED = {SumGroup.PROJECT: WITHOUT, SumGroup.HOST: HERE}
"""Names of groups whose sums have none; any other group is unknown."""


class CostTable(Struct, frozen=True):
    """Sums as lines, and what has to be said of them below."""

    lines: tuple[str, ...]
    notes: tuple[str, ...]


def make_table(by: SumGroup, sums: Sequence[Sum], width: int | None) -> CostTable:
    """Make it no wider than `width`, if given: first without the client's column, then by names."""
    from sm.views.columns import fit

    total = add_up(sums)
    rows: list[tuple[str, ...]] = [(by.capitalize(), *HEADERS, BY_CLIENT)]
    rows += [(name_sum(by, one), *list_cells(one), _format_by_client(one)) for one in sums]
    if len(sums) > 1:
        rows.append(("Total", *list_cells(total), _format_by_client(total)))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    if not total.by_client or (width and _measure(widths) > width):
        rows, widths = [row[:-1] for row in rows], widths[:-1]
        total = structs.replace(total, by_client=UNSET)
    if width:
        widths[0] = min(widths[0], max(6, width - _measure(widths) + widths[0]))
    lines = []
    for name, *cells in rows:
        padded = (cell.rjust(wide) for cell, wide in zip(cells, widths[1:], strict=True))
        lines.append(GAP.join((fit(name, widths[0]).ljust(widths[0]), *padded)).rstrip())
    return CostTable(tuple(lines), tuple(list_notes(total)))


def _measure(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def name_sum(by: SumGroup, one: Sum) -> str:
    """Name what the sum is of."""
    if by is SumGroup.ISSUE:
        return f"{one.name}#{one.issue}" if one.issue else WITHOUT
    return one.name or UNNAMED.get(by, UNKNOWN)


def list_cells(one: Sum) -> tuple[str, ...]:
    """List what stands below each of `HEADERS`."""
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
    return f"{sign}{show_dollars(one.price)}"


def _format_by_client(one: Sum) -> str:
    """Format what clients say themselves; ≥ if that is not about all of the requests."""
    if not one.by_client:
        return ""
    is_whole = one.by_client.requests == one.requests + one.unknown
    sign = ("≈" if one.is_on_plan else "") + ("" if is_whole else "≥")
    return f"{sign}{show_dollars(one.by_client.price)}"


def format_cost(one: Sum) -> str:
    """The price; all tokens together, `≥1.2M tok`, if there is none."""
    if one.requests > one.unpriced:
        return format_price(one)
    return f"{_format_tokens(one)} tok" if one.requests else UNKNOWN


def _format_tokens(one: Sum) -> str:
    """All tokens together, however they were read or written."""
    return f"{'' if one.is_complete else '≥'}{shorten_count(one.tokens.count_all())}"


AGENTS = {"main": "main agent", "subagent": "subagents", "title": "titles"}
"""Names of kinds of agents where a sentence has their sums; the others stand as they are."""


def tell_cost(by_agent: Sequence[Sum]) -> str:
    """The sums of an issue or session in words: `$9.60 for 4.1M tokens in 52 requests`.

    Several kinds of agents are named with what each has cost.
    """
    total = add_up(by_agent)
    price = f"{format_price(total)} for " if total.requests > total.unpriced else ""
    asked = show_requests(total.requests + total.unknown)
    told = f"{price}{_format_tokens(total)} tokens in {asked}"
    if len(by_agent) > 1:
        parts = (f"{AGENTS.get(one.name, one.name)} {format_cost(one)}" for one in by_agent)
        told = f"{told} ({', '.join(parts)})"
    return told


def list_notes(total: Sum) -> Iterator[str]:
    """List what the figures leave out, and what they mean."""
    if total.unknown:
        yield f"≥: what {show_requests(total.unknown)} used is in no record (docs/COST.md)"
    if total.at_least:
        yield f"≥: the answer to {show_requests(total.at_least)} was cut off"
    if total.unpriced:
        yield f"≥: {show_requests(total.unpriced)} without a known price cost more"
    if total.is_on_plan:
        yield "≈: list price of what a subscription has paid for"
    if said := total.by_client:
        asked = f"{said.requests:,} of {show_requests(total.requests + total.unknown)}"
        ours = f": {show_dollars(said.compared)} where list prices make {show_dollars(said.ours)}"
        yield f"{BY_CLIENT}: its own figure, for {asked}{ours if said.compared else ''}"


CSV_HEADER = (
    *("project", "issue", "requests"),
    *Tokens.__struct_fields__,
    *("price", "currency", "unpriced", "at_least", "unknown", "is_on_plan"),
    *("client_requests", "client_price", "client_compared", "client_ours"),
)


def list_csv_rows(by: SumGroup, sums: Sequence[Sum]) -> Iterator[tuple[object, ...]]:
    """The sums for another program: a header, and a row each."""
    first = CSV_HEADER if by is SumGroup.ISSUE else (str(by), *CSV_HEADER[2:])
    yield first
    for one in sums:
        group = (one.name, one.issue) if by is SumGroup.ISSUE else (one.name,)
        counts = tuple(getattr(one.tokens, name) for name in Tokens.__struct_fields__)
        price = (f"{one.price:.9f}", one.currency, one.unpriced, one.at_least, one.unknown)
        said: tuple[object, ...] = ("",) * 4
        if told := one.by_client:
            dollars = (told.price, told.compared, told.ours)
            said = (told.requests, *(f"{each:.9f}" for each in dollars))
        yield (*group, one.requests, *counts, *price, int(one.is_on_plan), *said)


PRICE_HEADERS = (
    *("Model", "Input", "Output", "Cache read", "Written 5m", "Written 1h", "Read on", "From"),
)
UNPROVEN = "unproven"


def make_price_table(prices: Sequence[Price]) -> list[str]:
    """Lines of a table of prices. A rate that no page has shown is marked."""
    rows = [PRICE_HEADERS, *map(_list_rates, prices)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(PRICE_HEADERS))]
    lines = []
    for name, *cells, read, source in rows:
        padded = (cell.rjust(wide) for cell, wide in zip(cells, widths[1:-2], strict=True))
        columns = (name.ljust(widths[0]), *padded, read.ljust(widths[-2]), source)
        lines.append("  ".join(columns).rstrip())
    return lines


def _list_rates(price: Price) -> tuple[str, ...]:
    names = Rates.__struct_fields__
    cells = []
    for name in names:
        rate = getattr(price.rates, name) if price.rates else None
        mark = "?" if name in price.unproven else ""
        cells.append(UNKNOWN if rate is None else f"${rate:g}{mark}")
    return (price.model, *cells, price.read or UNPROVEN, price.source or price.listed_by)


SPENT = "cost"
"""The event that says what a session has used by its end."""


class SessionCost(Struct, frozen=True):
    """Text of that event: what the issue has used so far, or else the session, by kind of agent."""

    project: str
    issue: IssueId
    by_agent: list[Sum]


def encode(spent: SessionCost) -> str:
    """Text of the event."""
    return msgspec.json.encode(spent).decode()


def tell_spent(text: str) -> str:
    """The words of `sm trace` and `sm events` for what a session has used."""
    try:
        spent = decode(text, SessionCost)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return f"cost: {text}"  # of another version
    return f"cost: {tell_cost(spent.by_agent)}"


def tell_raise(text: str) -> str:
    """The words of `sm trace` and `sm events` for a limit that was raised or lowered."""
    return f"a budget was {text}"
