"""A connection that nobody can hold open: for each part of a request there is a time.

The server beneath has a limit only for the pause between two requests.
"""

from __future__ import annotations

import asyncio

from msgspec import json
from uvicorn.protocols.http.h11_impl import H11Protocol

from sm.server.shapes import Error

HEAD_S = 10.0
"""For the head of a request, which fits into one packet."""
REQUEST_S = 90.0
"""From there to the last byte of the answer; longer than anything that is waited for."""
CONNECTIONS = 200
"""At once; of 1024 file descriptors, as most systems have it."""
PHRASES = {400: "Bad Request", 503: "Service Unavailable"}


class Connection(H11Protocol):
    """HTTP/1.1 with deadlines; what cannot be a request is answered in JSON as well."""

    _deadline: asyncio.TimerHandle | None = None
    _at_work = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request, unless there are too many already."""
        assert isinstance(transport, asyncio.Transport), "a socket's goes both ways"
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self._refuse(503, "too many connections: try again")
        else:
            self._allow(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._allow(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what was sent; its first bytes begin the time for a head."""
        super().data_received(data)
        self._look()
        if self._deadline is None:
            self._allow(HEAD_S)

    def on_response_complete(self) -> None:
        """The server's own limit holds until the next request begins, if none has already."""
        self._at_work = False
        self._allow(None)
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._refuse(400, msg.rstrip(".").lower())

    def _look(self) -> None:
        """Begin the time for a request with the end of its head."""
        at_work = self.cycle is not None and not self.cycle.response_complete
        if at_work and not self._at_work:
            self._allow(REQUEST_S)
        self._at_work = at_work

    def _allow(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = (
            None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
        )

    def _refuse(self, status: int, why: str) -> None:
        body = json.encode(Error(why))
        head = (
            f"HTTP/1.1 {status} {PHRASES[status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
