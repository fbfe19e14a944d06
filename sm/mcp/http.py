"""The server over streamable HTTP: any number of clients, which know address and token."""

from __future__ import annotations

import socket
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.server import running
from sm.server.answers import failure
from sm.server.guard import Guard, Rules

PATH = "/mcp"
BODY_LIMIT = 8 * 1024 * 1024
"""Bytes; a content of the largest size allowed fits, however it is escaped."""


class OnlyPost:
    """Refuses, at our path, to open a stream that nothing would ever be sent on.

    A client may try, and goes on without one when it hears that there is none: MCP, streamable
    HTTP, "Listening for Messages from the Server".
    """

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or have `app` answer."""
        app = self.app
        if scope["type"] == "http" and scope["path"] == PATH and scope["method"] != "POST":
            app = failure(405, "only POST is answered here", {"Allow": "POST"})
        await app(scope, receive, send)


def serve(server: Server[Any], listener: socket.socket, rules: Rules) -> None:
    """Answer on that socket until SIGTERM or Ctrl-C.

    No call has to do with another, so none is kept in memory: a client does not notice that the
    server was started anew.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        json_response=True,
        max_request_body_size=BODY_LIMIT,
        # Who may ask is decided once, before, for all our servers.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app.add_middleware(OnlyPost)
    app.add_middleware(Guard, rules)
    running.run(app, listener, lifespan=True)
