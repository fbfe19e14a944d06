"""The server: sessions, messages and handoffs of a state root over HTTP."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable, Mapping

from msgspec import structs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route

from sm.base import plugin
from sm.base.output import say_text
from sm.plugins.http import openapi, running
from sm.plugins.http.answers import Answer, answer_failure, answer_success
from sm.plugins.http.guard import Guard, Rules
from sm.plugins.http.routes import ENDPOINTS, Endpoint, make_routes
from sm.plugins.http.shapes import Health
from sm.plugins.http.sites import Entrance, load_sites, make_site_routes
from sm.plugins.http.webhooks import PREFIX, Receiver
from sm.sessions.machine import Machine
from sm.views.figures import list_headers


def serve(
    machine: Machine,
    version: str,
    listener: socket.socket,
    rules: Rules,
    receivers: Mapping[str, Receiver],
    key: str = "",
) -> None:
    """Answer on that socket until SIGTERM or Ctrl-C; `receivers` take webhooks, by project.

    `key` is what sites take from the person who has started the server.
    """
    running.run(make_application(machine, version, rules, receivers, key), listener, sockets=True)


def load_added() -> list[Endpoint]:
    """Load what plugins bring: their endpoints, and what they show beside each session."""
    list_headers()
    return [endpoint for _, endpoint in plugin.load_parts("routes")]


def make_application(
    machine: Machine,
    version: str,
    rules: Rules,
    receivers: Mapping[str, Receiver],
    key: str = "",
) -> Starlette:
    """Make the interface to the sessions of a state root."""
    endpoints = [each for each in (*ENDPOINTS, *load_added()) if receivers or not each.signed]
    described = openapi.describe(endpoints, version, token=bool(rules.token))
    sites = load_sites()
    paths = tuple(path for site in sites for path in site.paths)
    rules = structs.replace(rules, signed=PREFIX if receivers else "", sites=paths)
    fixed: dict[str, Health | dict[str, object]] = {
        openapi.HEALTH: Health("healthy", version),
        openapi.DESCRIPTION: described,
    }
    app = Starlette(
        routes=[
            *make_routes(machine, endpoints, receivers),
            *(Route(path, _constant(said)) for path, said in fixed.items()),
            *make_site_routes(machine, sites, Entrance(rules.token, rules.loopback, key)),
        ],
        middleware=[Middleware(Guard, rules)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return app


def _constant(value: Health | dict[str, object]) -> Callable[[Request], object]:
    async def answer(_request: Request) -> Answer:
        return answer_success(value)

    return answer


async def _refused(_request: Request, error: Exception) -> Answer:
    assert isinstance(error, HTTPException)
    what = {404: "there is nothing here: see /openapi.json", 405: "not with this method"}
    headers = dict(error.headers or {})
    return answer_failure(error.status_code, what.get(error.status_code, error.detail), headers)


async def _failed(_request: Request, error: Exception) -> Answer:
    say_text("".join(traceback.format_exception(error)), err=True, nl=False)
    return answer_failure(500, "unexpected error: what 'sm serve' printed has the details")
