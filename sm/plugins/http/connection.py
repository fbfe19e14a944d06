"""A connection with a deadline for each part of a request, so that no client can hold it open.

The server beneath limits only the pause between two requests.
"""

from __future__ import annotations

import asyncio
import sys
from enum import Enum
from http import HTTPStatus
from typing import Any, ClassVar

from msgspec import json
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from sm.plugins.http.heads import Parser, explain_refusal
from sm.plugins.http.shapes import Error

CONNECTIONS = 200
"""At the same time. Most systems allow 1024 file descriptors."""
REFUSED = 200
"""So many more connections are told why they are refused. Others are only closed."""


class Stage(Enum):
    """What a connection is doing, and after how many seconds sm gives it up."""

    HEAD = 10.0
    """Its client sends the head of a request, which fits into one packet."""
    ANSWER = 90.0
    """From the head until the client has the answer's last byte: longer than any answer takes."""
    END = 5.0
    """It was refused. Its client reads why, and leaves."""


class Connection(H11Protocol):
    """HTTP/1.1 with deadlines. It answers an invalid request in JSON, too."""

    _refused: ClassVar[set[Connection]] = set()
    _stage = Stage.HEAD
    _deadline: asyncio.TimerHandle | None = None
    _timed: RequestResponseCycle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        """Take what the server passes for each client."""
        super().__init__(*given, **named)
        self.conn = Parser()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request, unless there are too many connections."""
        assert isinstance(transport, asyncio.Transport), "a socket's goes both ways"
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self._refuse(503, "too many connections: try again")
        else:
            self._enter(Stage.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._refused.discard(self)
        if self._deadline:
            self._deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data. The first bytes after an answer start the time for a head."""
        if self in self._refused:
            return
        super().data_received(data)
        self._look()
        if self._stage is Stage.ANSWER and not self._is_at_work():
            self._enter(Stage.HEAD)

    def on_response_complete(self) -> None:
        """Go on with the next request, if there is one.

        The time runs on, so a client that does not read the answer cannot hold the connection.
        """
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request."""
        self._refuse(*explain_refusal(sys.exception()))

    def _is_at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _look(self) -> None:
        """Start the time for an answer at the end of each head."""
        if self.cycle is not self._timed and self not in self._refused:
            self._timed = self.cycle
            self._enter(Stage.ANSWER)

    def _enter(self, stage: Stage) -> None:
        if self._deadline:
            self._deadline.cancel()
        self._stage = stage
        self._deadline = self.loop.call_later(stage.value, self.transport.abort)

    def _refuse(self, status: int, why: str) -> None:
        """Say why, and listen for a moment.

        If we closed at once while the client still sends, the connection would be reset, and the
        client might not read the answer.
        """
        self.connections.discard(self)
        at_work = self.cycle if self._is_at_work() else None
        if at_work:
            at_work.disconnected = True
            at_work.message_event.set()
        if len(self._refused) >= REFUSED or (at_work and at_work.response_started):
            self.transport.abort()
            return
        self._refused.add(self)
        self.transport.write(_refusal(status, why))
        self.transport.write_eof()
        self._enter(Stage.END)


def _refusal(status: int, why: str) -> bytes:
    body = json.encode(Error(why))
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
