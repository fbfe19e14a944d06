"""`GET /cost`: what `sm cost --json` prints, over HTTP."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from sm.plugins.cost.ledger.nodes import list_unheard
from sm.plugins.cost.ledger.sums import Sum, SumGroup
from sm.plugins.cost.report import check_project, list_price_notes, parse_since, read_report
from sm.plugins.cost.settings import find_ledger
from sm.web.answers import HttpError
from sm.web.endpoint import Call, Endpoint


class CostQuery(Struct, frozen=True):
    """A query for costs, as by the options of `sm cost`."""

    by: Annotated[SumGroup, Meta(description="What to sum up together.")] = SumGroup.ISSUE
    since: Annotated[
        str, Meta(description="From that day on: 2026-11-28, or 7d ago.", max_length=40)
    ] = ""
    project: Annotated[str, Meta(description="Of this project only.", max_length=200)] = ""


class Costs(Struct, frozen=True):
    """The sums. `warnings` say what is not in them."""

    costs: list[Sum]
    warnings: list[str]


def list_costs(call: Call[CostQuery]) -> Costs:
    """Read the sums."""
    query, warnings = call.body, list(list_unheard(call.machine.root))
    try:
        since = parse_since(query.since)
    except ValueError as error:
        raise HttpError(422, f"since: {error}") from error
    path = find_ledger(call.machine.settings)
    try:
        check_project(path, query.project, call.machine.settings)
    except ValueError as error:
        raise HttpError(422, f"project: {error}") from error
    costs = read_report(path, query.by, since, query.project, warnings.append)
    return Costs(costs, warnings + list_price_notes(path, since, query.project))


ENDPOINT = Endpoint(
    "GET",
    "/cost",
    list_costs,
    "What agents have used, and what it cost.",
    Costs,
    query=CostQuery,
    errors=(422, 503),
    slow=True,
    pool=lambda _: "cost",
    acts=False,
)
