"""The process around an application, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sm.web.address import BACKLOG
from sm.web.guard import HEAD_LIMIT
from sm.web.rights import PEER
from sm.web.unix_socket import find_peer

GRACE_S = 5
"""Time that running requests may take when the server stops, in seconds."""

CONNECTIONS = 200
"""Connections at the same time. Most systems allow 1024 file descriptors."""
UNREAD_S = 90
"""Time that a client may read nothing of its answer, or be gone without a word, in seconds."""
FRAME_LIMIT = 64 * 1024
"""Bytes of a message over a WebSocket, with all its fragments; a longer one closes it (1009).

uvicorn 0.54 passes the limit on (websockets_sansio_impl.py, line 107), and websockets 17.4 takes
off the limit of each frame what of the message has come already (protocol.py, line 586). Nothing
is read while a message waits to be taken (lines 306 and 553). So `ws_max_queue`, which that
protocol does not use, is not missed: what waits comes from one read of asyncio, 256 KB at most.
"""
ALIVE_S = 20.0
"""Seconds between two pings of a WebSocket, and seconds that the answer may take.

The same file, lines 342 to 370: after that the connection is closed (1011). An answer is not heard
while a message waits to be taken, so nothing that takes one may be busy for so long.
"""
TICK_S = 1.0
"""Seconds between two looks at the clock."""
PARSED = 4 * HEAD_LIMIT
"""Bytes of a head that the parser collects. The guard refuses a head that is above HEAD_LIMIT
only."""


def run(
    app: ASGIApp,
    listener: socket.socket,
    *,
    lifespan: bool = False,
    sockets: type[asyncio.Protocol] | None = None,
) -> None:
    """Answer on that socket until SIGTERM or Ctrl-C.

    `lifespan`: the application wants to know of both. `sockets` speaks WebSocket for it,
    which only a server that takes them loads.

    Requests under way then have `GRACE_S`. After that the process ends with them, as any process of
    sm may at any moment: the next pass over the session goes on with the work.
    """
    is_unix = listener.family == socket.AF_UNIX
    if not is_unix:
        # The kernel gives up clients that read nothing and those that are gone: see tcp(7). Each
        # connection that is accepted has the options of the socket that listens.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_S * 1000)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, UNREAD_S)
    config = uvicorn.Config(
        app,
        http=_Peered if is_unix else "h11",
        h11_max_incomplete_event_size=PARSED,
        # It also counts the connection that asks.
        limit_concurrency=CONNECTIONS + 1,
        ws=sockets or "none",
        ws_max_size=FRAME_LIMIT,
        ws_ping_interval=ALIVE_S,
        ws_ping_timeout=ALIVE_S,
        # What it saves on this machine costs more than it is worth, and memory for each connection.
        ws_per_message_deflate=False,
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
    server = _Server(config)
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


class _Server(uvicorn.Server):
    """Wakes once a second, for the `Date` of its answers, and when it is told to stop.

    uvicorn's own loop wakes ten times a second to see whether it has been told: most of what a
    server without requests uses of a processor.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Wait until it is told to stop."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._told.wait()
        self._loop = None  # it is closed before the last signal can come

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; called by a signal."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            # asyncio.Runner wakes its loop for Ctrl-C in the same way.
            self._loop.call_soon_threadsafe(self._told.set)


class _Peered(H11Protocol):
    """Tells the application which user is at the other end of a Unix socket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel once, for all requests of the connection."""
        super().connection_made(transport)
        self._peer = find_peer(transport.get_extra_info("socket"))
        self.app = self._tell(self.app)
        if (upgraded := self.ws_protocol_class) is not None:
            self.ws_protocol_class = lambda **given: self._upgrade(upgraded, given)  # type: ignore[assignment]

    def _upgrade(self, kind: Any, given: dict[str, Any]) -> Any:
        protocol = kind(**given)
        protocol.app = self._tell(protocol.app)
        return protocol

    def _tell(self, app: Any) -> Any:
        async def told(scope: Scope, receive: Receive, send: Send) -> None:
            scope[PEER] = self._peer
            await app(scope, receive, send)

        return told
