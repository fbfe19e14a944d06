"""The server: the application, and the process around it until that is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import threading
import traceback
from collections.abc import Callable

import click
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route

from sm.server import openapi
from sm.server.answers import Answer, failure, success
from sm.server.connection import Connection
from sm.server.guard import Guard, Rules
from sm.server.listening import BACKLOG
from sm.server.routes import routes
from sm.server.shapes import Health
from sm.store.paths import Root

HEAD_LIMIT = 16 * 1024
GRACE_S = 5
"""So long requests under way may take when the server is to stop."""


def serve(root: Root, version: str, listener: socket.socket, rules: Rules) -> None:
    """Answer on that socket until SIGTERM or Ctrl-C.

    What is under way then has some seconds. Where that is not enough the process ends with it, as
    any process of sm may at any moment: whoever looks after the session next goes on with it.
    """
    config = uvicorn.Config(
        application(root, version, rules),
        http=Connection,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=HEAD_LIMIT,
    )
    # The server raises the signal again that it was stopped by, when all is done.
    before = {each: signal.signal(each, _stop) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if threading.active_count() > 1:
        os._exit(0)


def _stop(_number: int, _frame: object) -> None:
    """Being stopped is how a server ends: no error."""


def application(root: Root, version: str, rules: Rules) -> Starlette:
    """The interface over the sessions of a state root."""
    described = openapi.description(version, token=bool(rules.token))
    fixed: dict[str, Health | dict[str, object]] = {
        openapi.HEALTH: Health("healthy", version),
        openapi.DESCRIPTION: described,
    }
    app = Starlette(
        routes=[*routes(root), *(Route(path, _constant(said)) for path, said in fixed.items())],
        middleware=[Middleware(Guard, rules)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return app


def _constant(value: Health | dict[str, object]) -> Callable[[Request], object]:
    async def answer(_request: Request) -> Answer:
        return success(value)

    return answer


async def _refused(_request: Request, error: Exception) -> Answer:
    assert isinstance(error, HTTPException)
    what = {404: "there is nothing here: see /openapi.json", 405: "not with this method"}
    headers = dict(error.headers or {})
    return failure(error.status_code, what.get(error.status_code, error.detail), headers)


async def _failed(_request: Request, error: Exception) -> Answer:
    click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    return failure(500, "unexpected error: what 'sm serve' printed has the details")
