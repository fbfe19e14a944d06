"""Answers a scrape. Everything is read at that moment, and nothing is counted in between."""

from __future__ import annotations

from functools import partial

from anyio import CapacityLimiter, to_thread
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.plugins.metrics.collecting import Collector
from sm.sessions.machine import Machine
from sm.web.sites import Entrance

METHODS = ("GET", "HEAD")


def make_app(machine: Machine, entrance: Entrance) -> ASGIApp:
    """Make the application. Scrapes that come together are answered one after another."""
    # Of its own: that of the library has figures of this process, and is one for all of it.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(machine))
    turns = CapacityLimiter(1)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if refused := _refuse(request, entrance):
            await refused(scope, receive, send)
            return
        made = partial(_encode, registry, request.headers.get("accept", ""))
        text, kind = await to_thread.run_sync(made, limiter=turns)
        headers = {"Content-Type": kind, "Cache-Control": "no-store"}
        await Response(text, headers=headers)(scope, receive, send)

    return answer


def _refuse(request: Request, entrance: Entrance) -> Response | None:
    """Refuse whoever may not read, or asks for something else; return None for all others."""
    if not entrance.find_right(request.scope):
        return PlainTextResponse("a token is needed: send 'Authorization: Bearer …'\n", 401)
    if request.method not in METHODS:
        return PlainTextResponse("not with this method\n", 405, {"Allow": ", ".join(METHODS)})
    return None


def _encode(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Return the metrics as the client wants them, and what that format is called."""
    try:
        encode, kind = choose_encoder(accept)
    except (ValueError, TypeError):  # it asks for a version that is none
        encode, kind = choose_encoder("")
    return encode(registry), kind
