"""Sums of the ledger, by issue, day, model, project, agent or host."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType, structs

from sm.base.issue_id import IssueId
from sm.plugins.cost.ledger.client_prices import ByClient, read_by_client
from sm.plugins.cost.ledger.database import COUNTS
from sm.plugins.cost.ledger.entries import BILLIONTHS, CURRENCY, CostLedger
from sm.plugins.cost.ledger.records.record import Tokens


class SumGroup(StrEnum):
    """Grouping of sums."""

    ISSUE = "issue"
    DAY = "day"
    MODEL = "model"
    PROJECT = "project"
    AGENT = "agent"
    HOST = "host"


COLUMNS: dict[SumGroup, tuple[str, ...]] = {by: (str(by),) for by in SumGroup} | {
    SumGroup.ISSUE: ("project", "issue")
}
OF_SESSION = "session = ? AND host = ''"
"""A session elsewhere has a name that one here may have as well."""
SUMMED = ("requests", *COUNTS, "price", "unpriced", "at_least", "unknown")


class Sum(Struct, frozen=True):
    """What some requests have used together.

    `name` is the day, model, project, agent or host, '' for this machine; of an issue it is the
    project's. `unknown` requests
    are known to have been made, and no more; of those `at_least`, the answer was cut off; those
    `unpriced` have no list price. None of them are in `price`, or not with all that they have used.
    `by_client` is what clients say themselves of those for which they do.
    """

    name: str
    issue: IssueId = 0
    requests: int = 0
    tokens: Tokens = Tokens()
    price: float = 0.0
    currency: str = CURRENCY
    unpriced: int = 0
    at_least: int = 0
    unknown: int = 0
    is_on_plan: bool = False
    by_client: ByClient | UnsetType = UNSET

    @property
    def is_complete(self) -> bool:
        """Whether all the tokens are known."""
        return not (self.at_least or self.unknown)

    @property
    def is_priced(self) -> bool:
        """Whether the price is that of all the tokens."""
        return self.is_complete and not self.unpriced


def read_sums(ledger: CostLedger, by: SumGroup, *, since: str = "", project: str = "") -> list[Sum]:
    """The sums from a day on, of one project or all."""
    found = _read(ledger, COLUMNS[by], "day >= ? AND ? IN ('', project)", (since, project))
    said = {} if by is SumGroup.HOST else read_by_client(ledger, COLUMNS[by], since, project)
    groups = ((one.name, one.issue) if by is SumGroup.ISSUE else (one.name,) for one in found)
    return [
        structs.replace(one, by_client=said.get(group, UNSET))
        for one, group in zip(found, groups, strict=True)
    ]


def read_sums_of_models(ledger: CostLedger) -> dict[str, list[Sum]]:
    """Read what each model has used for each project; '' is that of sessions without an issue."""
    projects = [one.name for one in read_sums(ledger, SumGroup.PROJECT)]
    return {one: _read(ledger, COLUMNS[SumGroup.MODEL], "project = ?", (one,)) for one in projects}


def read_sums_of_issues(
    ledger: CostLedger, issues: Collection[tuple[str, IssueId]]
) -> dict[tuple[str, IssueId], Sum]:
    """Read what these issues, each of a project, have used in all their sessions."""
    where = "project = ? AND issue = ?"
    read = (_read(ledger, COLUMNS[SumGroup.ISSUE], where, issue) for issue in issues)
    return {(one.name, one.issue): one for found in read for one in found}


def read_sums_of_sessions(ledger: CostLedger, sessions: Collection[str]) -> dict[str, Sum]:
    """Read what these sessions of this machine have used."""
    read = (_read(ledger, ("session",), OF_SESSION, (session,)) for session in sessions)
    return {one.name: one for found in read for one in found}


def read_sums_by_agent(ledger: CostLedger, project: str, issue: IssueId, session: str) -> list[Sum]:
    """Read what agents of each kind have used for an issue; without one, for the session."""
    if issue:
        return _read(ledger, COLUMNS[SumGroup.AGENT], "project = ? AND issue = ?", (project, issue))
    return _read(ledger, COLUMNS[SumGroup.AGENT], OF_SESSION, (session,))


def _read(
    ledger: CostLedger, columns: Sequence[str], where: str, values: Sequence[str | int]
) -> list[Sum]:
    names = ", ".join(columns)
    summed = ", ".join(f"sum({name})" for name in SUMMED)
    query = (
        f"SELECT {names}, max(plan), {summed} FROM sums WHERE {where} "  # noqa: S608 - names of ours
        f"GROUP BY {names} HAVING sum(requests) + sum(unknown) > 0 ORDER BY {names}"
    )
    rows = ledger.connection.execute(query, values)
    return [_make_sum(row[: len(columns)], *row[len(columns) :]) for row in rows]


def _make_sum(group: tuple[str | int, ...], plan: int, requests: int, *rest: int) -> Sum:
    counts, (price, unpriced, at_least, unknown) = rest[: len(COUNTS)], rest[len(COUNTS) :]
    return Sum(
        name=str(group[0]),
        issue=group[1] if len(group) > 1 else 0,
        requests=requests,
        tokens=Tokens(*counts),
        price=price / BILLIONTHS,
        unpriced=unpriced,
        at_least=at_least,
        unknown=unknown,
        is_on_plan=bool(plan),
    )


def add_up(sums: Sequence[Sum]) -> Sum:
    """All of them together."""
    tokens = Tokens(*(sum(getattr(one.tokens, count) for one in sums) for count in COUNTS))
    return Sum(
        name="",
        requests=sum(one.requests for one in sums),
        tokens=tokens,
        price=sum(one.price for one in sums),
        unpriced=sum(one.unpriced for one in sums),
        at_least=sum(one.at_least for one in sums),
        unknown=sum(one.unknown for one in sums),
        is_on_plan=any(one.is_on_plan for one in sums),
        by_client=_add_up_by_client([one.by_client for one in sums if one.by_client]),
    )


def _add_up_by_client(found: Sequence[ByClient]) -> ByClient | UnsetType:
    if not found:
        return UNSET
    return ByClient(
        requests=sum(one.requests for one in found),
        price=sum(one.price for one in found),
        compared=sum(one.compared for one in found),
        ours=sum(one.ours for one in found),
    )
