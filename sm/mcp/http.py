"""The server over streamable HTTP: any number of clients, which know address and token."""

from __future__ import annotations

import socket
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from sm.server import running
from sm.server.guard import Guard, Rules

PATH = "/mcp"
BODY_LIMIT = 8 * 1024 * 1024
"""Bytes; a content of the largest size allowed fits, however it is escaped."""


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
    app.add_middleware(Guard, rules)
    running.run(app, listener, lifespan=True)
