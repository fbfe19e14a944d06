"""The numbers: what agents cost, what their time went to, and what came of it; also as files."""

from __future__ import annotations

import csv
import io
from functools import partial
from urllib.parse import urlencode

from msgspec import json
from starlette.requests import Request
from starlette.responses import Response

from sm.cli.times import format_moment
from sm.plugins.page.access import Visitor
from sm.plugins.page.answering import Page, Way, show
from sm.plugins.page.looks import GoneError
from sm.plugins.page.numbers.charts import list_charts
from sm.plugins.page.numbers.data import SPANS, USUAL, Choice, Shown
from sm.plugins.page.numbers.drawing import POLICY, draw
from sm.plugins.page.numbers.tables import FILES, list_tables, list_totals, make_json
from sm.plugins.page.paths import BELOW

NUMBERS = f"{BELOW}numbers"


def _read_choice(request: Request) -> Choice:
    asked = request.query_params
    span = asked.get("span", USUAL)
    return Choice(span if span in SPANS else USUAL, asked.get("project", "")[:200])


async def _read(page: Page, request: Request) -> Shown:
    return await page.read(partial(page.numbers.read, _read_choice(request)))


async def show_numbers(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with charts, and the figures of all as tables."""
    shown = await _read(page, request)
    query = urlencode({"span": shown.choice.span, "project": shown.choice.project})
    return show(
        "numbers.html",
        visitor,
        shown=shown,
        spans=SPANS,
        query=query,
        charts=[chart for chart in list_charts(shown) if not chart.is_empty],
        totals=list_totals(shown),
        tables=list_tables(shown),
        made_at=format_moment(shown.at),
    )


async def send_chart(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with one chart as a picture."""
    name, narrow = request.path_params["name"], "narrow" in request.query_params
    for chart in list_charts(await _read(page, request)):
        if chart.name == name:
            file = await page.read(partial(draw, chart, narrow=narrow))
            policy = {"Content-Security-Policy": POLICY}
            return Response(file, headers=policy, media_type="image/svg+xml")
    raise GoneError("there is no such chart")


async def send_json(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with all that the charts are made of."""
    made = make_json(await _read(page, request))
    return Response(json.encode(made), media_type="application/json")


async def send_csv(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with a table for a spreadsheet."""
    list_rows = FILES.get(request.path_params["name"])
    if list_rows is None:
        raise GoneError("there is no such table")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(list_rows(await _read(page, request)))
    return Response(text.getvalue(), media_type="text/csv")


ROUTES = (
    Way(NUMBERS, show_numbers, acts=False),
    Way(f"{NUMBERS}/numbers.json", send_json, acts=False),
    Way(f"{NUMBERS}/{{name}}.csv", send_csv, acts=False),
    Way(f"{NUMBERS}/{{name}}.svg", send_chart, acts=False),
)
