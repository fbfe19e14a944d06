"""Who may ask at all, before anything is looked at: no web page, and nobody without the token.

A page that a browser shows can send requests to this machine. It cannot choose the names `Host`
and `Origin`, so a name that is not ours (CWE-350, DNS rebinding) or another origin is refused.
Whoever brings the token is no such page: from a container this machine has another name.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sm.server.answers import failure

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

DRAIN_S = 1.0
DRAIN_LIMIT = 8 * 1024 * 1024
"""So much of a body that nobody wants is read nevertheless: a client that is still writing would
find the connection reset, and never read why."""


@dataclass(frozen=True)
class Rules:
    """The `token` that every request must bring, '' for none; `loopback`: only this machine."""

    token: str = ""
    loopback: bool = True

    def refusal(self, headers: Headers) -> tuple[int, str] | None:
        """Status and reason for a request with these headers, None for one that is let in."""
        if self.token and self._has_token(headers.get("authorization", "")):
            return None  # no page has it, so whatever it calls us, it may
        if not self._is_ours(_name(headers.get("host", ""))):
            return 403, "the name in 'Host' is not one of this server"
        origin = headers.get("origin")
        if origin is not None and _name(origin.partition("//")[2]) not in LOOPBACK:
            return 403, "web pages of other origins may not ask"
        if self.token:
            return 401, "a token is needed: send 'Authorization: Bearer …'"
        return None

    def _is_ours(self, name: str) -> bool:
        if name in LOOPBACK:
            return True
        if self.loopback:
            return _is_address(name, loopback=True)
        # An address that stands in a name's place leads nowhere else.
        return _is_address(name, loopback=False) or name == socket.gethostname().lower()

    def _has_token(self, authorization: str) -> bool:
        kind, _, token = authorization.partition(" ")
        right = hmac.compare_digest(token.strip().encode(), self.token.encode())
        return right and kind.lower() == "bearer"


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str, *, loopback: bool) -> bool:
    try:
        return ip_address(name).is_loopback or not loopback
    except ValueError:
        return False


class Guard:
    """Lets in what the rules allow, and ends the connection of whoever goes on sending."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        """Stand before `app`."""
        self.app = app
        self.rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or have `app` answer."""
        if scope["type"] == "lifespan":  # the server itself
            await self.app(scope, receive, send)
            return
        request = _Request(scope, receive, send)
        refused = self.rules.refusal(request.headers)
        app: ASGIApp = failure(*refused) if refused else self.app
        await app(scope, request.receive, request.send)


class _Request:
    """A request whose body has to be read to its end before the connection can be used again."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers = Headers(scope=scope)
        self._receive, self._send = receive, send
        length = self.headers.get("content-length", "0")
        self._unread = "transfer-encoding" in self.headers or length.strip("0") != ""

    async def receive(self) -> Message:
        message = await self._receive()
        self._unread = message["type"] == "http.request" and message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._unread:
            await self._drain()
            if self._unread:
                MutableHeaders(raw=message["headers"])["connection"] = "close"
        await self._send(message)

    async def _drain(self) -> None:
        if "expect" in self.headers:
            return  # such a client asks before it sends
        left = DRAIN_LIMIT
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                while self._unread and left > 0:
                    left -= len((await self.receive()).get("body", b""))
