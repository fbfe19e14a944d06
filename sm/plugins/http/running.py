"""The process around an application, until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import threading

import uvicorn
from starlette.types import ASGIApp

from sm.plugins.http.connection import Connection
from sm.plugins.http.listening import BACKLOG

GRACE_S = 5
"""How long running requests may take when the server stops."""


def run(app: ASGIApp, listener: socket.socket, *, lifespan: bool = False) -> None:
    """Answer on that socket until SIGTERM or Ctrl-C. `lifespan`: the application wants to know.

    Requests under way then have some seconds. After that the process ends with them, as any process
    of sm may at any moment: the next pass over the session goes on with the work.
    """
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on" if lifespan else "off",
        loop="asyncio",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = uvicorn.Server(config)
    # It listens to signals only once it has begun, and raises those again that it was stopped by
    # when all is done: being stopped is how a server ends, at any moment, and no error.
    before = {
        each: signal.signal(each, server.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        server.run(sockets=[listener])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if threading.active_count() > 1:
        os._exit(0)
