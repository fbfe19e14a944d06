"""Application behind the page: the paths of all its modules, and its own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from sm.plugins.page import (
    act_form,
    brake_page,
    changes_page,
    login_page,
    overview_page,
    session_page,
    timeline_page,
)
from sm.plugins.page.access import Visitor
from sm.plugins.page.board_reader import BoardReader
from sm.plugins.page.changes.highlighter import Highlighter
from sm.plugins.page.changes.shown import ChangeStore
from sm.plugins.page.logins import Logins
from sm.plugins.page.numbers import page as numbers_page
from sm.plugins.page.numbers_desk import NumbersDesk
from sm.plugins.page.paths import BELOW
from sm.plugins.page.renderer import RowDrawer, render
from sm.plugins.page.route import HEADERS, Page
from sm.plugins.page.stream import Stream
from sm.plugins.page.terminal import page as terminal_page
from sm.sessions.machine import Machine
from sm.web.rights import Right
from sm.web.sites import Entrance
from sm.web.worker_pools import WorkerPools

STATIC = Path(__file__).parent / "static"
READERS = ASKERS = 4
"""Threads that read at the same time, and as many that ask what may be slow."""
CLERKS = 1
"""Threads that change the logins: one at a time has their file anyway."""
CALLERS = 8
"""Threads that ask nodes, each for some seconds at most."""
WAYS = (
    *overview_page.ROUTES,
    *session_page.ROUTES,
    *changes_page.ROUTES,
    *terminal_page.ROUTES,
    *numbers_page.ROUTES,
    *timeline_page.ROUTES,
    *brake_page.ROUTES,
    *act_form.ROUTES,
    *login_page.ROUTES,
)


def make_page(machine: Machine, entrance: Entrance) -> ASGIApp:
    """Make the application."""
    page = _gather(machine, entrance)
    return Starlette(
        routes=[
            *(way.open(page) for way in WAYS),
            Route(f"{BELOW}static/{{path:path}}", _Static(directory=STATIC)),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=1000)],
        exception_handlers={HTTPException: _show_missing},
    )


def _gather(machine: Machine, entrance: Entrance) -> Page:
    looks = BoardReader(machine)
    file = machine.root.plugins / "page" / "logins.json"
    right = Right.READ if entrance.key_reads else Right.ACT
    return Page(
        looks,
        Logins(file, entrance.keys, entrance.key, right),
        entrance,
        Stream(looks),
        WorkerPools(4, 16),
        RowDrawer(),
        CapacityLimiter(READERS),
        CapacityLimiter(ASKERS),
        CapacityLimiter(CALLERS),
        NumbersDesk(looks),
        ChangeStore(),
        Highlighter(),
        CapacityLimiter(CLERKS),
    )


class _Static(StaticFiles):
    """Our own files, which change only with the program."""

    async def get_response(self, path: str, scope: Any) -> Response:
        response = await super().get_response(scope["path_params"]["path"], scope)
        response.headers.update(HEADERS | {"Cache-Control": "no-cache"})
        return response


def _show_missing(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    anybody = Visitor(may_read=True, may_act=True)  # nobody has to log in for this
    return HTMLResponse(
        render("problem.html", visitor=anybody, why="There is nothing here.", missing=True),
        error.status_code,
        HEADERS,
    )
