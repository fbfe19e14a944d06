"""Charts of the numbers, and what each says in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct

from sm.base.issue_id import rank
from sm.plugins.cost.display import format_price, name_sum
from sm.plugins.cost.ledger.amount import shorten_count, show_dollars
from sm.plugins.cost.ledger.sums import Sum, SumGroup
from sm.plugins.cost.ledger.sums import add_up as add_up_costs
from sm.plugins.page.numbers.periods import choose_period, list_periods, name_period
from sm.plugins.page.numbers_desk import ShownNumbers
from sm.views.numbers import SECONDS, DayNumbers, add_up
from sm.views.whose_turn import Turn

T = TypeVar("T")
LONGEST = 10
"""Issues or models that have a bar of their own; the others share one."""


class Unit(StrEnum):
    """Unit that the bars of a chart count."""

    DOLLARS = "dollars"
    TOKENS = "tokens"
    HOURS = "hours"
    MINUTES = "minutes"
    SECONDS = "seconds"
    PIECES = "pieces"


SHOW: dict[Unit, Callable[[float], str]] = {
    Unit.DOLLARS: show_dollars,
    Unit.TOKENS: lambda number: shorten_count(round(number)),
    Unit.HOURS: lambda hours: f"{hours:.1f} h",
    Unit.MINUTES: lambda minutes: f"{minutes:.1f} min",
    Unit.SECONDS: lambda seconds: f"{seconds:.1f} s",
    Unit.PIECES: lambda number: f"{number:,.0f}",
}
SCALES = {Unit.HOURS: 3600.0, Unit.MINUTES: 60.0, Unit.SECONDS: 1.0}
"""Seconds in one unit."""


class Series(Struct, frozen=True):
    """The bars of one colour; None where there is nothing that could be shown."""

    name: str
    values: tuple[float | None, ...]


class Chart(Struct, frozen=True, kw_only=True):
    """A chart: bars above each other for each label, or beside them if it lies `across`.

    `tells` says the same in words; `name` is what its address ends with.
    """

    name: str
    title: str
    unit: Unit
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    tells: str
    across: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the chart has no bar."""
        return not any(any(one.values) for one in self.series)


TURNS = {
    Turn.AGENT: "agent",
    Turn.CI: "CI",
    Turn.REVIEW: "review",
    Turn.PERSON: "person",
    Turn.REST: "at rest",
}
"""Words for whose turn it was."""
TIMES = {words: SECONDS[turn] for turn, words in TURNS.items()}
TOKENS: dict[str, Callable[[Sum], int]] = {
    "input": lambda one: one.tokens.input,
    "cache read": lambda one: one.tokens.cache_read,
    "cache written": lambda one: one.tokens.cache_write_5m + one.tokens.cache_write_1h,
    "output": lambda one: one.tokens.output,
}
EFFORT = {
    "restarts": "restarts",
    "rotations": "rotations",
    "CI attempts": "ci_attempts",
    "review rounds": "rounds",
}
AT_LEAST = "at least"
"""Name of the bars that stand for a lower bound."""


def list_charts(shown: ShownNumbers) -> list[Chart]:
    """List all charts, also those that have nothing to show."""
    period = choose_period(shown.since, shown.today)
    labels = list_periods(shown.since, shown.today, period)
    days_of = _gather(((name_period(one.day, period), one) for one in shown.days), labels)
    by_day = shown.costs[SumGroup.DAY]
    costs_of = _gather(((name_period(one.name, period), one) for one in by_day), labels)
    days = [add_up(days_of[label], label) for label in labels]
    costs = [(label, add_up_costs(costs_of[label])) for label in labels]
    of = f"by {period}"
    return [
        _draw_cost("cost", f"Cost {of}", costs),
        _draw_tokens("tokens", f"Tokens {of}", costs),
        _draw_days("time", f"Time {of}", _choose_unit(days), days, TIMES),
        _draw_days("merged", f"Merged {of}", Unit.PIECES, days, {"merged": "merged"}),
        _draw_days("effort", f"Restarts, rotations and attempts {of}", Unit.PIECES, days, EFFORT),
        *_draw_groups(shown, SumGroup.ISSUE),
        *_draw_groups(shown, SumGroup.MODEL),
    ]


def _gather(named: Iterable[tuple[str, T]], labels: Sequence[str]) -> dict[str, list[T]]:
    """Gather what has the same name; there is a list for each label."""
    found: dict[str, list[T]] = {label: [] for label in labels}
    for name, one in named:
        found.setdefault(name, []).append(one)
    return found


Named = tuple[str, Sum]


def _draw_groups(shown: ShownNumbers, by: SumGroup) -> Iterator[Chart]:
    found = [(name_sum(by, one), one) for one in order_by_cost(shown.costs[by])]
    of = f"by {by}" + (f", {LONGEST} of {len(found)}" if len(found) > LONGEST else "")
    yield _draw_cost(f"cost-{by}", f"Cost {of}", found[:LONGEST], across=True)
    yield _draw_tokens(f"tokens-{by}", f"Tokens {of}", found[:LONGEST], across=True)


def order_by_cost(sums: Iterable[Sum]) -> list[Sum]:
    """Sort by cost, the highest first; sums without a price come by their tokens."""
    return sorted(
        sums, key=lambda one: (-one.price, -one.tokens.count_all(), one.name, rank(one.issue))
    )


def _draw_cost(name: str, title: str, costs: Sequence[Named], *, across: bool = False) -> Chart:
    exact = tuple(one.price if is_priced(one) and one.is_priced else None for _, one in costs)
    least = tuple(one.price if is_priced(one) and not one.is_priced else None for _, one in costs)
    on_plan = any(one.is_on_plan for _, one in costs)
    series = [Series("list price" if on_plan else "cost", exact)]
    if any(least):
        series.append(Series(AT_LEAST, least))
    return Chart(
        name=name,
        title=title,
        unit=Unit.DOLLARS,
        labels=tuple(label for label, _ in costs),
        series=tuple(series),
        tells=_tell_costs(title, costs, show_price, lambda one: one.price, across=across),
        across=across,
    )


def _tell_costs(
    title: str,
    costs: Sequence[Named],
    show: Callable[[Sum], str],
    measure: Callable[[Sum], float],
    *,
    across: bool,
) -> str:
    """Tell costs in words: each of a few, or all together and the largest of many."""
    if across:
        return f"{title}: {', '.join(f'{label} {show(one)}' for label, one in costs)}."
    most, largest = max(costs, key=lambda one: measure(one[1]))
    together = show(add_up_costs([one for _, one in costs]))
    return f"{title}. Together {together}; the most in {most}: {show(largest)}."


def is_priced(one: Sum) -> bool:
    """Say whether any of its requests has a price: otherwise its cost is unknown, and not 0."""
    return one.requests > one.unpriced


def show_price(one: Sum) -> str:
    """Return its cost, as `sm cost` says it; '' where nothing was used."""
    return format_price(one) if one.requests or one.unknown else ""


def _draw_tokens(name: str, title: str, costs: Sequence[Named], *, across: bool = False) -> Chart:
    series = tuple(
        Series(kind, tuple(count(one) or None for _, one in costs))
        for kind, count in TOKENS.items()
    )
    return Chart(
        name=name,
        title=title,
        unit=Unit.TOKENS,
        labels=tuple(label for label, _ in costs),
        series=series,
        tells=_tell_costs(title, costs, _show_tokens, _count_tokens, across=across),
        across=across,
    )


def _count_tokens(one: Sum) -> int:
    return one.tokens.count_all()


def _show_tokens(one: Sum) -> str:
    return f"{'' if one.is_complete else '≥'}{shorten_count(_count_tokens(one))}"


def _choose_unit(days: Iterable[DayNumbers]) -> Unit:
    """Choose the largest unit that a day has one of: in a larger one all marks would be 0.0."""
    longest = max((getattr(day, field) for day in days for field in TIMES.values()), default=0.0)
    return next((unit for unit, lasts_s in SCALES.items() if longest >= lasts_s), Unit.SECONDS)


def _draw_days(
    name: str, title: str, unit: Unit, days: Sequence[DayNumbers], fields: Mapping[str, str]
) -> Chart:
    scale = SCALES.get(unit, 1.0)
    series = tuple(
        Series(words, tuple(getattr(day, field) / scale or None for day in days))
        for words, field in fields.items()
    )
    sums = ((one.name, math.fsum(filter(None, one.values))) for one in series)
    parts = ", ".join(f"{words} {SHOW[unit](number)}" for words, number in sums)
    return Chart(
        name=name,
        title=title,
        unit=unit,
        labels=tuple(day.day for day in days),
        series=series,
        tells=f"{title}. Together: {parts}.",
    )
