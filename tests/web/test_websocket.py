"""A server that stops while the other side of a WebSocket closes it."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState
from websockets.client import ClientProtocol
from websockets.protocol import State
from websockets.uri import parse_uri

from sm.web.websocket import ClosingWebSocket


class Wire(asyncio.Transport):
    """What the server writes, as long as nobody reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.is_closed = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def take(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that takes the WebSocket, and hears what comes."""
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    await receive()


@pytest.mark.parametrize("closes", [False, True], ids=["open", "closing"])
def test_a_socket_is_ended_whether_or_not_its_other_side_closes_it(closes: bool) -> None:
    async def go() -> None:
        config = uvicorn.Config(take, ws=ClosingWebSocket, log_config=None)
        config.load()
        server, wire = ClosingWebSocket(config, ServerState(), {}), Wire()
        client = ClientProtocol(parse_uri("ws://127.0.0.1/"))
        client.send_request(client.connect())
        server.connection_made(wire)
        server.data_received(b"".join(client.data_to_send()))
        while not wire.written:
            await asyncio.sleep(0)
        client.receive_data(wire.written)
        if closes:
            client.send_close(1000)
            server.data_received(b"".join(client.data_to_send()))
            assert server.conn.state is State.CLOSING
        wire.is_closed = False
        server.shutdown()
        assert wire.is_closed

    asyncio.run(go())
