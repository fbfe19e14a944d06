"""A browser's side of a terminal on the page, without a browser."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlencode

from msgspec import json
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from sm.plugins.page.access import COOKIE
from sm.plugins.page.logins import make_csrf_token
from tests.helpers import HANG_S
from tests.serving import NOTHING, Served


def post(server: Served, path: str, fields: dict[str, str], browser: str = "") -> HTTPResponse:
    """Send a form of the page."""
    client = HTTPConnection("127.0.0.1", server.port, timeout=HANG_S)
    with contextlib.closing(client):
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.url}
        sent = kind | ({"Cookie": f"{COOKIE}={browser}"} if browser else {})
        client.request("POST", path, urlencode(fields), sent)
        return client.getresponse()


def log_in(server: Served) -> str:
    """The secret of a browser that has used the link of the server, which it takes from there."""
    assert server.process.stdout
    key = server.process.stdout.readline().rpartition("key=")[2].strip()
    cookie = post(server, "/page/login", {"key": key}).getheader("set-cookie") or ""
    return cookie.partition("=")[2].partition(";")[0]


class Watcher:
    """A WebSocket to the terminal of a session; `shown` is all that came over it."""

    def __init__(
        self,
        server: Served,
        session: str = "dev-harb-3",
        *,
        browser: str = "",
        origin: str | None = None,
        draws: bool = True,
        headers: Mapping[str, str] = NOTHING,
    ) -> None:
        sent = dict(headers) | ({"Cookie": f"{COOKIE}={browser}"} if browser else {})
        self.browser, self.draws, self.shown = browser, draws, b""
        self.words: list[dict[str, Any]] = []
        self._stack = contextlib.ExitStack()
        opening = connect(
            f"{server.url.replace('http', 'ws')}/page/terminal/{session}",
            origin=server.url if origin is None else origin or None,  # type: ignore[arg-type]
            additional_headers=sent,
            open_timeout=HANG_S,
            close_timeout=1,
            compression=None,
            proxy=None,
        )
        self.socket = self._stack.enter_context(opening)

    def hear(self, timeout_s: float = HANG_S) -> dict[str, Any] | None:
        """Take the next message: a word, or None for bytes, which are kept."""
        said = self.socket.recv(timeout_s)
        if isinstance(said, bytes):
            self.shown += said
            if self.draws:
                self.socket.send(json.encode({"what": "drawn", "bytes": len(said)}).decode())
            return None
        word: dict[str, Any] = json.decode(said)
        self.words.append(word)
        return word

    def wait_for_word(self, what: str) -> dict[str, Any]:
        until = time.monotonic() + HANG_S
        while (word := self.hear(until - time.monotonic())) is None or word["what"] != what:
            pass
        return word

    def wait_for(self, shown: bytes) -> None:
        until = time.monotonic() + HANG_S
        while shown not in self.shown:
            self.hear(until - time.monotonic())

    def want_to_type(self, csrf: str | None = None) -> None:
        real = make_csrf_token(self.browser)
        wish = {"what": "type", "csrf": real if csrf is None else csrf}
        self.socket.send(json.encode(wish).decode())

    def want_to_look(self) -> None:
        self.socket.send('{"what":"look"}')

    def type(self, keys: bytes) -> None:
        self.socket.send(keys)

    def close(self) -> None:
        self._stack.close()


def refusal(server: Served, **how: Any) -> int:
    """The status with which such a WebSocket is refused, 0 if it is not."""
    try:
        Watcher(server, **how).close()
    except InvalidStatus as refused:
        return refused.response.status_code
    return 0


def ending(watcher: Watcher) -> str:
    """Why the server ends it."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            watcher.hear()
    return str(watcher.words[-1].get("why", "")) if watcher.words else ""
