"""Guard before the application: admits no web page, and no client without the token.

Before that it refuses a head that two readers could understand differently (CWE-444): a proxy
before this server and the server itself have to agree on who asks what of whom.

A page in a browser can send requests to this machine. But it cannot choose `Host` and `Origin`. So
a foreign name (CWE-350, DNS rebinding) or another origin is refused. A client with the token is no
such page: from a container, for example, this machine has another name.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sm.web.answers import answer_failure
from sm.web.rights import ONLY_READS, Declared, Keys, Right, ServerTokens, Tokenless

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
AUTHORITY = re.compile(
    r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,254}))(?::[0-9]{0,5})?", re.ASCII | re.IGNORECASE
)
"""A name or an address, perhaps a port, and nothing before, between or behind (RFC 9110, 7.2)."""
ORIGIN = re.compile(r"https?://(.+)")

HEAD_LIMIT = 16 * 1024
"""Bytes of a head, from the method to the empty line."""
SINGLE = (b"host", b"authorization", b"content-type", b"origin")
"""Headers that the answer depends on; each may come once."""

SLOWEST_S = 30.0
"""Time that any body may take to arrive, in seconds, also one that comes byte by byte."""
DRAIN_S = 1.0
DRAIN_LIMIT = 8 * 1024 * 1024
"""Bytes of an unwanted body that we read. Otherwise a client that still writes would find the
connection reset, and would never read why."""


class GuardRules(Struct, frozen=True):
    """The `token` that every request must bring, '' for none; `loopback`: only this machine.

    `readers` are tokens that only read, and `look` returns all tokens that count now, if they can
    change. `trust` says who needs none; None: anyone, unless there is a token at the start.

    `public` is the origin under which a proxy offers us, '' for none. If it `issues` tokens of its
    own, the application decides who may ask. Otherwise only that very name is ours: whatever comes
    through a proxy comes from this machine, so neither its address nor a name of ours says much.

    What is posted below the path `signed` is let in from everywhere and without a token, because
    its sender signs it instead; '' for no such path.

    Some routes decide themselves who may ask, as they have pages for people: a browser sends no
    token. Name and origin are decided here all the same.
    """

    token: str = ""
    loopback: bool = True
    public: str = ""
    signed: str = ""
    readers: tuple[str, ...] = ()
    trust: Tokenless | None = None
    issues: bool = False
    look: Callable[[], ServerTokens] | None = None

    @property
    def keys(self) -> Keys:
        """Tokens and trust that let a client in."""
        has_token = bool(self.token or self.readers)
        trust = self.trust or (Tokenless.NOBODY if has_token else Tokenless.ANYONE)
        return Keys(self.token, self.readers, trust, self.look)

    def lets_in(self, method: str, path: str) -> bool:
        """Say whether the application alone decides about such a request, by its signature."""
        return self.signed != "" and method == "POST" and path.startswith(self.signed)

    def refusal(
        self, scope: Scope, headers: Headers, *, decides: bool = False
    ) -> tuple[int, str] | None:
        """Return status and reason for refusing this request; None if it is allowed.

        `decides`: the application decides itself about tokens.
        """
        if self.keys.find_brought(headers.get("authorization", "")):
            return None  # no page has the token, so any name for us is fine
        if not self._is_ours(headers.get("host", "")):
            return 403, "the name in 'Host' is not one of this server"
        origin = headers.get("origin")
        if origin is not None and not self._may_ask(origin):
            return 403, "web pages of other origins may not ask"
        if self.issues or decides or self.keys.find_trusted(scope):
            return None
        return 401, "a token is needed: send 'Authorization: Bearer …'"

    def _may_ask(self, origin: str) -> bool:
        if self.public and not self.issues:
            return origin == self.public
        return _origin(origin) in LOOPBACK or (self.public != "" and origin == self.public)

    def _is_ours(self, authority: str) -> bool:
        if self.public and not self.issues:
            return authority.lower().removesuffix(":443") == self.public.removeprefix("https://")
        name = _name(authority)
        if name in LOOPBACK or (self.public and name == _origin(self.public)):
            return True
        if self.loopback:
            return _is_address(name, loopback=True)
        # An address in the place of a name cannot lead elsewhere.
        return _is_address(name, loopback=False) or name == socket.gethostname().lower()


def _name(authority: str) -> str:
    """Return the name or address in it, without brackets; '' if it is invalid."""
    found = AUTHORITY.fullmatch(authority)
    if found is None:
        return ""
    in_brackets, name = found.groups()
    if in_brackets is None:
        return str(name).lower().removesuffix(".")
    return in_brackets if isinstance(_address(in_brackets), IPv6Address) else ""


def _origin(origin: str) -> str:
    """Return the name in an origin; '' if it is not the origin of a server's page."""
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
        address = (
            address.ipv4_mapped or address
        )  # newer Pythons do this themselves, older ones do not
    return address is not None and (address.is_loopback or not loopback)


def refuse_head(scope: Scope) -> tuple[int, str] | None:
    """Return status and reason for refusing a large or ambiguous head; None if it is fine.

    The parser beneath reads all that the grammar allows.
    """
    names = [name for name, _ in scope["headers"]]
    if _measure_head(scope) > HEAD_LIMIT:
        return 431, f"the head is above {HEAD_LIMIT:,} bytes"
    if not scope["http_version"].startswith("1."):
        return 505, "only HTTP/1.1 is spoken here"
    if not scope["raw_path"].startswith(b"/"):
        return 400, "this is no proxy: ask for a path, which begins with '/'"
    if b"content-length" in names and b"transfer-encoding" in names:
        return 400, "'Content-Length' and 'Transfer-Encoding' exclude each other"
    for name in SINGLE:
        if names.count(name) > 1:
            return 400, f"'{name.decode().title()}' may be there only once"
    return None


def find_method(scope: Scope) -> str:
    """Return the method of a request; a WebSocket's is always the same (RFC 6455, 4.1)."""
    return str(scope.get("method", "GET"))


def _measure_head(scope: Scope) -> int:
    """Return the size of a head whose lines have no blanks but the usual ones."""
    target = len(scope["raw_path"]) + len(scope["query_string"]) + bool(scope["query_string"])
    first = len(find_method(scope)) + target + len("  HTTP/1.1\r\n")
    return first + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) + 2


def _find_unknown(_scope: Scope) -> Declared:
    """Declare nothing of the route, which then counts as one that acts."""
    return Declared(BaseRoute(), acts=None)


class Guard:
    """Admits what the rules allow, and closes the connection of a client that goes on sending."""

    def __init__(
        self, app: ASGIApp, rules: GuardRules, find: Callable[[Scope], Declared] = _find_unknown
    ) -> None:
        """Stand before `app`; `find` says which of its routes answers a request."""
        self.app = app
        self.rules = rules
        self._keys, self._find = rules.keys, find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or have `app` answer."""
        if scope["type"] == "lifespan":  # the server itself
            await self.app(scope, receive, send)
            return
        request = _Request(scope, receive, send)
        await self._choose(scope, request.headers)(scope, request.receive, request.send)

    def _choose(self, scope: Scope, headers: Headers) -> ASGIApp:
        """Return the application that answers, or a refusal."""
        unclear = refuse_head(scope)
        if unclear:
            return answer_failure(*unclear, {"Connection": "close"})
        brought = self._keys.find_brought(headers.get("authorization", ""))
        answering = self._find(scope)
        if brought is Right.READ and answering.acts is not False:
            return answer_failure(403, ONLY_READS)
        if self.rules.lets_in(find_method(scope), scope["path"]):
            return self.app
        refused = self.rules.refusal(scope, headers, decides=answering.decides)
        return answer_failure(*refused) if refused else self.app


class _Request:
    """A request whose body must be read to its end before the connection can be used again."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers = Headers(scope=scope)
        self._receive, self._send = receive, send
        length = self.headers.get("content-length", "0")
        self._unread = "transfer-encoding" in self.headers or length.strip("0") != ""
        self._due = asyncio.get_running_loop().time() + SLOWEST_S

    async def receive(self) -> Message:
        try:
            async with asyncio.timeout_at(self._due if self._unread else None):
                message = await self._receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
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
