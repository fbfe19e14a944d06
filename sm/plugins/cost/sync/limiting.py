"""At home: which limits a node is told, and what is known to be used of them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping

from sm.config.schema import Config
from sm.config.shapes import read_section
from sm.issues.runners import Placement
from sm.plugins.cost.budget.balances import Book
from sm.plugins.cost.budget.limits import (
    DAY,
    DAY_S,
    find_issue_limit,
    find_placed_limit,
    list_shared,
)
from sm.plugins.cost.budget.rules import Limit, Row, merge
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.ledger.scopes import Scope
from sm.plugins.cost.sync.wire import OF_SESSION, Span, ToldLimit

DAYS_BACK = 2
"""A node may be in another time zone, and enter requests of yesterday today."""
AFTER_ALL = "9999"
"""Is behind the name of any day."""


class Meant:
    """A limit for the sessions of a node: of a project or any, of an issue or any."""

    def __init__(self, limit: Limit, span: Span, project: str = "", issue: int = 0) -> None:
        """Keep what it is."""
        self.limit, self.span, self.project, self.issue = limit, span, project, issue


def list_meant(config: Config, placed: Collection[Placement]) -> list[Meant]:
    """Return the limits that these sessions are under."""
    return list(_find_meant(config, placed, time.time()))


def _find_meant(config: Config, placed: Collection[Placement], now: float) -> Iterator[Meant]:
    names = {one.project for one in placed}
    is_told = set[Scope]()
    for project in config.projects:
        if project.name not in names:
            continue
        for limit in list_shared(config, project, now):
            if limit.scope is Scope.DAY:
                if limit.scope not in is_told:
                    yield Meant(limit, _span_days(now))
                is_told.add(limit.scope)
            else:
                yield Meant(limit, Span(Scope.PROJECT, project.name, project.name), project.name)
        own = read_section(project, Budget)
        for one in placed:
            if one.project == project.name:
                yield from _list_own(own, one)


def _list_own(own: Budget, placement: Placement) -> Iterator[Meant]:
    """Those of its issue, and of its session."""
    named = placement.project, placement.issue
    if limit := find_issue_limit(own, *named):
        yield Meant(limit, Span(limit.scope, limit.name, limit.name), *named)
    if limit := find_placed_limit(own, placement):
        yield Meant(limit, OF_SESSION, *named)


def _span_days(now: float) -> Span:
    """Lately, by the days of a node: what was used since it was heard is in there."""
    first = time.strftime(DAY, time.localtime(now - DAYS_BACK * DAY_S))
    return Span(Scope.DAY, first, AFTER_ALL)


def tell(
    book: Book, meant: Iterable[Meant], totals: Mapping[Span, tuple[Row, ...]]
) -> tuple[ToldLimit, ...] | None:
    """Return the limits as a node is told them; None while it has not told all of its totals."""
    listed = list(meant)
    if any(one.span not in totals for one in listed):
        return None
    limits = [one.limit for one in listed]
    used = zip(listed, book.list_rows(limits), book.list_raised(limits), strict=True)
    return tuple(_make_told(one, rows, raised, totals[one.span]) for one, rows, raised in used)


def _make_told(meant: Meant, rows: list[Row], raised: int, heard: tuple[Row, ...]) -> ToldLimit:
    limit = meant.limit
    return ToldLimit(
        span=meant.span,
        project=meant.project,
        issue=meant.issue,
        unit=limit.amount.unit,
        height=max(0, limit.amount.count + raised),
        words=limit.words,
        command=limit.act.command if limit.act else "",
        named=limit.act.limit if limit.act else "",
        ends_at=limit.ends_at,
        allows_unknown=limit.allows_unknown,
        rows=tuple(merge(rows)),
        heard=heard,
    )
