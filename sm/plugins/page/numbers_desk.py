"""Data of the page of numbers for a span and a project, read from the journal and the ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from msgspec import Struct

from sm.base.errors import SmError
from sm.plugins.cost.display import list_notes
from sm.plugins.cost.ledger.sums import Sum, SumGroup
from sm.plugins.cost.ledger.sums import add_up as add_up_costs
from sm.plugins.cost.report import list_unheard, parse_since, read_known
from sm.plugins.cost.settings import find_ledger
from sm.plugins.page.board_reader import BoardReader
from sm.views.numbers import DayNumbers, NumbersReader, add_up, name_day

SPANS = {"7": "7 days", "30": "30 days", "90": "90 days", "all": "all"}
"""Spans of time, as the address has them, and what they are called."""
USUAL = "30"
FRESH_S = 2.0
"""Seconds for which the page and its pictures show the same."""
KEPT = 16
"""Choices whose numbers are remembered for that."""
GROUPS = (SumGroup.DAY, SumGroup.ISSUE, SumGroup.MODEL)


class NumbersChoice(Struct, frozen=True):
    """Choice of the person: a span of `SPANS`, and a project, '' for all."""

    span: str = USUAL
    project: str = ""

    @property
    def since(self) -> str:
        """First day, as `sm cost --since` has it; '' for all."""
        return "" if self.span == "all" else parse_since(f"{self.span}d")


class ShownNumbers(Struct, frozen=True, kw_only=True):
    """The numbers at the moment `at`, from the day `since` up to `today`.

    `days` are added up over projects. `is_whole`: the journal goes back as far. `notes` say what
    the figures leave out. `projects` are those that can be chosen.
    """

    choice: NumbersChoice
    at: float
    since: str
    today: str
    days: tuple[DayNumbers, ...]
    total: DayNumbers
    costs: dict[SumGroup, list[Sum]]
    cost: Sum
    is_whole: bool
    notes: tuple[str, ...]
    projects: tuple[str, ...]


class NumbersDesk:
    """Reads what is asked for, once for all that ask together."""

    def __init__(self, looks: BoardReader) -> None:
        """Read nothing yet."""
        self._looks = looks
        self._reader = NumbersReader(looks.machine.root)
        self._lock = threading.Lock()
        self._last: dict[NumbersChoice, tuple[float, ShownNumbers]] = {}

    def read(self, choice: NumbersChoice) -> ShownNumbers:
        """Return the numbers of a choice.

        Raises:
            SmError: the journal or the configuration cannot be read.

        """
        with self._lock:
            known = self._last.get(choice)
            if known and time.monotonic() < known[0] + FRESH_S:
                return known[1]
            shown = self._read(choice)
            self._last.pop(choice, None)
            self._last[choice] = time.monotonic(), shown
            while len(self._last) > KEPT:
                self._last.pop(next(iter(self._last)))
            return shown

    def _read(self, choice: NumbersChoice) -> ShownNumbers:
        configured = [project.name for project in self._looks.list_projects()]
        path, notes = find_ledger(self._looks.machine.settings), list[str]()
        try:
            costs = read_known(path, GROUPS, choice.since, choice.project)
            spent = [one.name for one in read_known(path, (SumGroup.PROJECT,))[SumGroup.PROJECT]]
        except SmError as error:
            costs, spent = {by: [] for by in GROUPS}, []
            notes.append(f"What it cost cannot be read: {error.message}")
        notes += list_unheard(self._looks.machine.root)
        found = self._reader.read({*configured, *spent})
        names = {*configured, *spent, *(one.project for one in found)} - {""}
        wanted = [one for one in found if choice.project in ("", one.project)]
        now = time.time()
        today = name_day(now)
        told = (*(one.day for one in wanted), *(one.name for one in costs[SumGroup.DAY]))
        since = choice.since or min(told, default=today)
        cost = add_up_costs(costs[SumGroup.DAY])
        began = name_day(self._reader.first_at or now)
        is_whole = not self._reader.is_cut or (self._reader.first_at > 0 and began < since)
        days = _join([one for one in wanted if one.day >= since])
        notes += list_notes(cost)
        if not is_whole:
            notes.append(f"≥: what happened before {began} is not in the journal any more")
        return ShownNumbers(
            choice=choice,
            at=now,
            since=since,
            today=today,
            days=days,
            total=add_up(days),
            costs=costs,
            cost=cost,
            is_whole=is_whole,
            notes=tuple(notes),
            projects=tuple(sorted(names)),
        )


def _join(found: Iterable[DayNumbers]) -> tuple[DayNumbers, ...]:
    """Join the days, so that each is there once, whatever its projects."""
    by_day: dict[str, list[DayNumbers]] = {}
    for one in found:
        by_day.setdefault(one.day, []).append(one)
    return tuple(add_up(parts, day) for day, parts in by_day.items())
