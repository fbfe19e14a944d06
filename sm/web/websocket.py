"""A WebSocket that can be ended at any moment, also while its other side closes it."""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class ClosingWebSocket(WebSocketsSansIOProtocol):
    """Is closed without a word if the closing words were said already.

    uvicorn 0.54 says them all the same when the server stops (websockets_sansio_impl.py, line 187),
    which websockets 17.4 refuses (protocol.py, line 385): the whole server ended with an error.
    """

    def shutdown(self) -> None:
        """End it, as the server stops."""
        if self.conn.state.name in ("CLOSING", "CLOSED"):
            self.stop_keepalive()
            self.transport.close()
        else:
            super().shutdown()
