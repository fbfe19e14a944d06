"""Tables of the figures on the page of numbers, also as CSV and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct, to_builtins

from sm.plugins.cost.display import HEADERS, list_cells, list_csv_rows, name_sum
from sm.plugins.cost.ledger.sums import Sum, SumGroup
from sm.plugins.page.numbers.charts import TURNS, is_priced, order_by_cost, show_price
from sm.plugins.page.numbers_desk import GROUPS, ShownNumbers
from sm.views.numbers import COUNTED, FIELDS, SECONDS
from sm.views.times import format_span

LISTED = 50
"""Rows that a table of the page has at most; its file has all."""


class Table(Struct, frozen=True):
    """A table of the page; `file` is the name of its CSV, `more` are the rows that are left out."""

    title: str
    file: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0


def list_totals(shown: ShownNumbers) -> list[tuple[str, str]]:
    """List the sums of the whole span, as people read them."""
    total, bound = shown.total, "" if shown.is_whole else "≥"
    requests, *_ = list_cells(shown.cost)
    times = ((words, getattr(total, SECONDS[turn])) for turn, words in TURNS.items())
    return [
        ("Cost", show_price(shown.cost) or "nothing"),
        ("Requests", requests),
        *((words, f"{bound}{getattr(total, field)}") for words, field in WORDS.items()),
        *((f"Time: {words}", f"{bound}{format_span(time)}") for words, time in times if time),
    ]


WORDS = dict(
    zip(("Merged", "Restarts", "Rotations", "CI attempts", "Review rounds"), COUNTED, strict=True)
)
"""Fields that are counted, by the words that people read."""


def list_tables(shown: ShownNumbers) -> list[Table]:
    """List the figures of all charts, the newest day first."""
    days = [*reversed(shown.days)]
    heads = (*WORDS, *(f"Time: {words}" for words in TURNS.values()))
    rows = [
        (
            day.day,
            *(str(getattr(day, field)) for field in COUNTED),
            *(_show_time(getattr(day, SECONDS[turn])) for turn in TURNS),
        )
        for day in days
    ]
    return [
        *(_list_costs(by, shown.costs[by]) for by in GROUPS),
        _cut("What came of it, and what its time went to, by day", "days", ("Day", *heads), rows),
    ]


def _list_costs(by: SumGroup, sums: list[Sum]) -> Table:
    ordered = reversed(sums) if by is SumGroup.DAY else order_by_cost(sums)
    rows = [(name_sum(by, one), *list_cells(one)) for one in ordered]
    return _cut(f"Cost and tokens by {by}", f"cost-{by}", (by.capitalize(), *HEADERS), rows)


def _cut(title: str, file: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(title, file, head, tuple(rows[:LISTED]), max(0, len(rows) - LISTED))


def _show_time(seconds: float) -> str:
    return format_span(seconds) if seconds else "0"


# Files

Rows = Iterable[tuple[object, ...]]


def list_day_rows(shown: ShownNumbers) -> Rows:
    """List every day that has anything, and what is counted of it; times are in seconds."""
    yield ("day", *FIELDS)
    for day in shown.days:
        yield (day.day, *(_round(getattr(day, field)) for field in FIELDS))


def list_cost_rows(by: SumGroup, shown: ShownNumbers) -> Rows:
    """List costs as `sm cost --csv` does; what has no known price has no price."""
    header, *rows = list_csv_rows(by, shown.costs[by])
    at = header.index("price")
    yield header
    for one, row in zip(shown.costs[by], rows, strict=True):
        yield row if is_priced(one) else (*row[:at], "", *row[at + 1 :])


FILES: dict[str, Callable[[ShownNumbers], Rows]] = {
    "days": list_day_rows,
    **{f"cost-{by}": partial(list_cost_rows, by) for by in GROUPS},
}
"""Tables for spreadsheets, by their names."""


def _round(number: float) -> float:
    return round(number, 3)


def make_json(shown: ShownNumbers) -> dict[str, object]:
    """Return all for programs; a cost is as `sm cost --json` has it, and as people read it."""
    return {
        "since": shown.since,
        "until": shown.today,
        "project": shown.choice.project,
        "at": shown.at,
        "is_whole": shown.is_whole,
        "notes": shown.notes,
        "days": [
            {"day": day.day} | {field: _round(getattr(day, field)) for field in FIELDS}
            for day in shown.days
        ],
        "costs": {by: [_make_cost(one) for one in shown.costs[by]] for by in GROUPS},
    }


def _make_cost(one: Sum) -> dict[str, object]:
    values: dict[str, object] = to_builtins(one)
    unknown: dict[str, object] = {} if is_priced(one) else {"price": None}
    return {"shown": show_price(one), **values, **unknown}
