"""Server over HTTP: sessions, messages and handoffs of a state root."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import structs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route

from sm.base import plugin
from sm.base.output import say_text
from sm.plugins.http import openapi
from sm.plugins.http.routes import ENDPOINTS, make_routes
from sm.plugins.http.shapes import Health
from sm.plugins.http.webhooks import PREFIX, Receiver
from sm.sessions.machine import Machine
from sm.views.figures import list_headers
from sm.web import server
from sm.web.answers import Answer, answer_failure, answer_success
from sm.web.endpoint import Endpoint
from sm.web.guard import Guard, GuardRules
from sm.web.rights import Declared, Keys, Tokenless, find_answering
from sm.web.sites import Entrance, load_sites, make_site_routes
from sm.web.websocket import ClosingWebSocket


def serve(
    machine: Machine,
    version: str,
    listener: socket.socket,
    rules: GuardRules,
    receivers: Mapping[str, Receiver],
    key: str = "",
    *,
    key_reads: bool = False,
) -> None:
    """Answer on that socket until SIGTERM or Ctrl-C; `receivers` take webhooks, by project.

    `key` is what sites take from the person who has started the server.
    """
    app = make_application(machine, version, rules, receivers, key, key_reads=key_reads)
    server.run(app, listener, sockets=ClosingWebSocket)


def load_added() -> list[Endpoint]:
    """Load what plugins bring: their endpoints, and what they show beside each session."""
    list_headers()
    return [endpoint for _, endpoint in plugin.load_parts("routes")]


def make_application(
    machine: Machine,
    version: str,
    rules: GuardRules,
    receivers: Mapping[str, Receiver],
    key: str = "",
    *,
    key_reads: bool = False,
) -> Starlette:
    """Make the interface to the sessions of a state root."""
    keys, sites = rules.keys, load_sites()
    # Any other site was written when the token was all that there was to look at.
    all_decide = bool(rules.token) and not rules.public
    rules = structs.replace(rules, signed=PREFIX if receivers else "")
    entrance = Entrance(
        *(rules.token, rules.loopback, key, key_reads),
        *(keys.readers, keys.trust, rules.public, keys.look),
    )
    routes = [
        *list_own_routes(machine, version, receivers, keys),
        *make_site_routes(machine, sites, entrance, all_decide=all_decide),
    ]
    app = Starlette(
        routes=[one.route for one in routes],
        middleware=[Middleware(Guard, rules, partial(find_answering, routes))],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return app


def list_own_routes(
    machine: Machine, version: str, receivers: Mapping[str, Receiver], keys: Keys
) -> list[Declared]:
    """Return all endpoints, and the description of them."""
    endpoints = [each for each in (*ENDPOINTS, *load_added()) if receivers or not each.signed]
    needs_token = keys.trust is not Tokenless.ANYONE
    described = openapi.describe(endpoints, version, token=needs_token, readers=bool(keys.readers))
    fixed: dict[str, Health | dict[str, object]] = {
        openapi.HEALTH: Health("healthy", version),
        openapi.DESCRIPTION: described,
    }
    answering = zip(make_routes(machine, endpoints, receivers), endpoints, strict=True)
    return [
        *(Declared(route, endpoint.acts) for route, endpoint in answering),
        *(Declared(Route(path, _constant(said)), acts=False) for path, said in fixed.items()),
    ]


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
