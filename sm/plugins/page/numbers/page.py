"""The numbers: what agents cost, what their time went to, and what came of it; also as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from urllib.parse import urlencode

from msgspec import json
from starlette.requests import Request
from starlette.responses import Response

from sm.plugins.page.access import Visitor
from sm.plugins.page.errors import GoneError
from sm.plugins.page.numbers.charts import list_charts
from sm.plugins.page.numbers.drawing import POLICY, draw
from sm.plugins.page.numbers.tables import FILES, list_tables, list_totals, make_json
from sm.plugins.page.numbers_desk import SPANS, USUAL, NumbersChoice, ShownNumbers
from sm.plugins.page.paths import BELOW
from sm.plugins.page.route import Page, PageRoute, show
from sm.views.times import format_moment

NUMBERS = f"{BELOW}numbers"


async def _answer(
    page: Page, request: Request, make: Callable[[ShownNumbers], Response]
) -> Response:
    """Read and answer in a thread: a long time has thousands of rows."""
    asked = request.query_params
    span = asked.get("span", USUAL)
    choice = NumbersChoice(span if span in SPANS else USUAL, asked.get("project", "")[:200])
    return await page.read(lambda: make(page.numbers.read(choice)))


async def show_numbers(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with charts, and the figures of all as tables."""

    def make(shown: ShownNumbers) -> Response:
        return show(
            "numbers.html",
            visitor,
            shown=shown,
            spans=SPANS,
            query=urlencode({"span": shown.choice.span, "project": shown.choice.project}),
            charts=[chart for chart in list_charts(shown) if not chart.is_empty],
            totals=list_totals(shown),
            tables=list_tables(shown),
            made_at=format_moment(shown.at),
        )

    return await _answer(page, request, make)


async def send_chart(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with one chart as a picture."""
    name, narrow = request.path_params["name"], "narrow" in request.query_params

    def make(shown: ShownNumbers) -> Response:
        for chart in list_charts(shown):
            if chart.name == name:
                policy = {"Content-Security-Policy": POLICY}
                file = draw(chart, narrow=narrow)
                return Response(file, headers=policy, media_type="image/svg+xml")
        raise GoneError("there is no such chart")

    return await _answer(page, request, make)


async def send_json(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with all that the charts are made of."""

    def make(shown: ShownNumbers) -> Response:
        return Response(json.encode(make_json(shown)), media_type="application/json")

    return await _answer(page, request, make)


async def send_csv(page: Page, request: Request, _visitor: Visitor) -> Response:
    """Answer with a table for a spreadsheet."""
    list_rows = FILES.get(request.path_params["name"])
    if list_rows is None:
        raise GoneError("there is no such table")

    def make(shown: ShownNumbers) -> Response:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(list_rows(shown))
        return Response(text.getvalue(), media_type="text/csv")

    return await _answer(page, request, make)


ROUTES = (
    PageRoute(NUMBERS, show_numbers, acts=False),
    PageRoute(f"{NUMBERS}/numbers.json", send_json, acts=False),
    PageRoute(f"{NUMBERS}/{{name}}.csv", send_csv, acts=False),
    PageRoute(f"{NUMBERS}/{{name}}.svg", send_chart, acts=False),
)
