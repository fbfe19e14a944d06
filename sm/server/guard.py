"""Who may ask at all, before anything is looked at: no web page, and nobody without the token.

A page that a browser shows can send requests to this machine. It cannot choose the names `Host`
and `Origin`, so a name that is not ours (CWE-350, DNS rebinding) or another origin is refused.
Whoever brings the token is no such page: from a container this machine has another name.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sm.server.answers import failure

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
AUTHORITY = re.compile(
    r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,254}))(?::[0-9]{0,5})?", re.ASCII | re.IGNORECASE
)
"""A name or an address, perhaps a port, and nothing before, between or behind (RFC 9110, 7.2)."""
ORIGIN = re.compile(r"https?://(.+)")

DRAIN_S = 1.0
DRAIN_LIMIT = 8 * 1024 * 1024
"""So much of a body that nobody wants is read nevertheless: a client that is still writing would
find the connection reset, and never read why."""


class Rules(Struct, frozen=True):
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
        if origin is not None and _origin(origin) not in LOOPBACK:
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


def _name(authority: str) -> str:
    """The name or address in it, without brackets; '' if it cannot be one."""
    found = AUTHORITY.fullmatch(authority)
    if found is None:
        return ""
    in_brackets, name = found.groups()
    if in_brackets is None:
        return str(name).lower().removesuffix(".")
    return in_brackets if isinstance(_address(in_brackets), IPv6Address) else ""


def _origin(origin: str) -> str:
    """The name in an origin, '' if it is that of no page that a server sent."""
    found = ORIGIN.fullmatch(origin)
    return _name(found[1]) if found else ""


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None


def _is_address(name: str, *, loopback: bool) -> bool:
    address = _address(name)
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address  # newer Pythons look through it, older do not
    return address is not None and (address.is_loopback or not loopback)


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
