"""Overview of all limits for `sm budget`: what is used, left and raised of each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from msgspec import Struct

from sm.base.errors import SmError
from sm.base.issue_id import IssueId
from sm.config.schema import Config
from sm.config.shapes import read_section
from sm.issues.placements import list_placements
from sm.issues.rules.allowance import LimitStage
from sm.plugins.cost.budget import remote_limits
from sm.plugins.cost.budget.balances import Balances, measure
from sm.plugins.cost.budget.limits import (
    find_day_limit,
    find_issue_limit,
    find_machine_limit,
    find_project_limit,
    find_session_limit,
    read_own,
)
from sm.plugins.cost.budget.raises import list_raises
from sm.plugins.cost.budget.rules import BudgetLimit, LimitUse, weigh
from sm.plugins.cost.budget.settings import Budget
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.amount import SCALE, AmountUnit, show
from sm.plugins.cost.ledger.entries import CostLedger
from sm.plugins.cost.ledger.scopes import Scope
from sm.sessions import registry
from sm.sessions.session import IssueSession
from sm.store.paths import Root


class DecidedRaise(Struct, frozen=True):
    """A raise, in the unit of its limit: dollars or tokens. Negative: some was taken back."""

    at: float
    by: str
    amount: float | int


class LimitRow(Struct, frozen=True):
    """A limit, in its unit: dollars or tokens. What is not known is within `used`."""

    called: str
    scope: Scope
    project: str
    issue: IssueId
    session: str
    unit: AmountUnit
    limit: float | int
    used: float | int
    not_known: float | int
    left: float | int
    stage: LimitStage
    says: str
    until: float | None
    raises: tuple[DecidedRaise, ...]


class NamedLimit(Struct, frozen=True):
    """A limit, and whose it is."""

    limit: BudgetLimit
    called: str
    project: str = ""
    issue: IssueId = 0
    session: str = ""


def list_rows(limits: Iterable[NamedLimit], root: Root, ledger: CostLedger) -> list[LimitRow]:
    """List what is used of each limit."""
    book, sharers = Balances(ledger.connection), progress.count_followed(root)
    return [
        _make_row(found, limit, used, ledger)
        for found in limits
        for limit, used in measure(book, [found.limit], sharers)
    ]


def list_set(config: Config, root: Root) -> Iterator[NamedLimit]:
    """List all limits that are set: shared ones first, then those of open sessions and issues."""
    now = time.time()
    if limit := find_machine_limit(read_section(config, Budget), now):
        yield NamedLimit(limit, "today")
    for project in config.projects:
        if limit := find_day_limit(config, project, now):
            yield NamedLimit(limit, f"{project.name}, today", project.name)
        if limit := find_project_limit(project):
            yield NamedLimit(limit, project.name, project.name)
    for session in registry.list_all(root, lambda _: None):
        try:
            own = read_own(session)
        except SmError:  # its configuration cannot be used, which its passes tell
            continue
        named = (session.project_name, session.issue, session.name)
        if isinstance(session, IssueSession) and (
            limit := find_issue_limit(own, session.project_name, session.issue)
        ):
            yield NamedLimit(limit, session.address, *named)
        if limit := find_session_limit(session, own):
            yield NamedLimit(limit, f"session {session.address}", *named)
    yield from _list_elsewhere(config, root)
    yield from _list_told(config, now)


def _list_told(config: Config, now: float) -> Iterator[NamedLimit]:
    """List the limits of other installations for sessions here, but for each session's own."""
    for told in remote_limits.list_all(config):
        if told.span.scope is not Scope.SESSION:
            name = f"{told.project}#{told.issue}" if told.issue else told.project or "today"
            limit = remote_limits.make_limit(told, now)
            yield NamedLimit(limit, f"{name}, set elsewhere", told.project, told.issue)


def _list_elsewhere(config: Config, root: Root) -> Iterator[NamedLimit]:
    """List the limits of issues that other machines work on."""
    for project in config.projects:
        for one in list_placements(root.project(project.name)):
            own = read_section(project, Budget)
            if limit := find_issue_limit(own, project.name, one.issue):
                name = f"{project.name}#{one.issue}"
                yield NamedLimit(limit, name, project.name, one.issue, one.session)


def _make_row(
    found: NamedLimit, limit: BudgetLimit, used: LimitUse, ledger: CostLedger
) -> LimitRow:
    unit, weighed = limit.amount.unit, weigh(limit, used)
    return LimitRow(
        called=found.called,
        scope=limit.scope,
        project=found.project,
        issue=found.issue,
        session=found.session,
        unit=unit,
        limit=_plain(unit, limit.height),
        used=_plain(unit, used.at_most),
        not_known=_plain(unit, used.bound),
        left=_plain(unit, max(0, limit.height - used.at_most)),
        stage=weighed.stage,
        says=weighed.shown,
        until=weighed.until,
        raises=tuple(
            DecidedRaise(one.at, one.by, _plain(unit, one.amount))
            for one in list_raises(ledger.connection, limit)
        ),
    )


def _plain(unit: AmountUnit, count: int) -> float | int:
    return count / SCALE[unit] if unit is AmountUnit.USD else count


HEADERS = ("Budget", "Limit", "Used", "Left", "Raised")


def list_cells(row: LimitRow) -> tuple[str, ...]:
    """A line of the table."""

    def tell(value: float | int) -> str:
        return show(row.unit, round(value * SCALE[row.unit]))

    raised = sum(one.amount for one in row.raises)
    decided = ""
    if row.raises:
        last = row.raises[-1]
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(last.at))
        decided = f"{tell(raised)}, last by {last.by} {when}"
    used = f"≤{tell(row.used)}" if row.not_known else tell(row.used)
    return (row.called, tell(row.limit), used, tell(row.left), decided)
