"""Page of what has happened across sessions, such as tonight; and of sessions that are over."""

from __future__ import annotations

import itertools
import time

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from sm.plugins.page.access import Visitor
from sm.plugins.page.board_page import has_words
from sm.plugins.page.paths import BELOW
from sm.plugins.page.route import Page, PageRoute, show
from sm.views.numbers import name_day
from sm.views.timeline import Timeline, TimelineEntry, TimelineKind, read_timeline

DAY_S = 24 * 3600.0
EVENING = 18
"""Hour at which a night begins, on this machine's clock."""
SPANS = {"night": "tonight", "1d": "24 hours", "3d": "3 days", "7d": "7 days", "30d": "30 days"}
"""Spans of time, as the address has them, and what they are called."""


class TimelineChoice(Struct, frozen=True):
    """Choice of the person: a span of `SPANS`, a project, a kind, and words."""

    span: str = "night"
    project: str = ""
    kind: str = ""
    words: str = ""

    def takes(self, entry: TimelineEntry) -> bool:
        """Whether the entry is chosen."""
        if self.project and entry.project != self.project:
            return False
        if self.kind and entry.kind != self.kind:
            return False
        return has_words(f"{entry.name} {entry.title} {entry.kind} {entry.text}", self.words)


def find_start(span: str, now: float) -> float:
    """Return the moment at which a span begins; a night begins at the last evening."""
    if span != "night":
        return now - float(span.removesuffix("d")) * DAY_S
    local = time.localtime(now)
    evening = time.mktime((*local[:3], EVENING, 0, 0, 0, 0, -1))
    if evening > now:
        evening = time.mktime((*local[:2], local[2] - 1, EVENING, 0, 0, 0, 0, -1))
    return evening


async def show_timeline(page: Page, request: Request, visitor: Visitor) -> Response:
    """Answer with what has happened in the span that was chosen."""
    choice = _read_choice(request)

    def make() -> Response:
        projects = [project.name for project in page.looks.list_projects()]
        since = find_start(choice.span, time.time())
        timeline = read_timeline(page.looks.machine.root.journal, projects, since)
        shown = Timeline(tuple(filter(choice.takes, timeline.entries)), timeline.is_whole)
        board, _ = page.looks.read()
        return show(
            "timeline.html",
            visitor,
            choice=choice,
            since=since,
            spans=SPANS,
            kinds=timeline.count(),
            projects=projects,
            days=[
                (day, list(found))
                for day, found in itertools.groupby(shown.entries, lambda one: name_day(one.at))
            ],
            timeline=shown,
            at_work={row.id for row in board.rows},
        )

    return await page.read(make)


def _read_choice(request: Request) -> TimelineChoice:
    asked = request.query_params
    span, kind = asked.get("span", ""), asked.get("kind", "")
    return TimelineChoice(
        span=span if span in SPANS else "night",
        project=asked.get("project", ""),
        kind=kind if kind in set(TimelineKind) else "",
        words=asked.get("q", "")[:200],
    )


ROUTES = (PageRoute(f"{BELOW}timeline", show_timeline, acts=False),)
