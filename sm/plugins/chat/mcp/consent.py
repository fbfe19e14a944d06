"""Asks the person, by a page in the browser, whether a client may use the tools."""

from __future__ import annotations

import hmac
import math
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

import anyio.to_thread
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.transport_security import RequestBodyLimitMiddleware
from msgspec import Struct
from pydantic import AnyUrl
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route, request_response

from sm.base.output import say, warn
from sm.plugins.chat.mcp import page, secret
from sm.plugins.chat.mcp.page import Question
from sm.plugins.chat.mcp.provider import PAGE, GrantRequest, Provider
from sm.plugins.chat.mcp.registrations import RegisteredClient

BURST = 5
PAUSE_S = 30.0


class Tries:
    """Limits the tries for a secret: a few at once, then one after each pause.

    All clients are counted together: behind a proxy they cannot be told apart.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds from any start."""
        self._clock = clock
        self._left = float(BURST)
        self._at = clock()

    def wait_s(self) -> int:
        """Return the seconds until the next try is allowed; 0 means now."""
        self._refill()
        return 0 if self._left >= 1 else math.ceil((1 - self._left) * PAUSE_S)

    def note_wrong(self) -> None:
        """Count a wrong try, or one that is about to be checked."""
        self._refill()
        self._left = max(0.0, self._left - 1)

    def note_right(self) -> None:
        """Uncount the last try, because it was right."""
        self._left = min(BURST, self._left + 1)

    def _refill(self) -> None:
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._at) / PAUSE_S)
        self._at = now


BODY_LIMIT = 32 * 1024
FIELDS = 8
STALE = (
    "This page has expired",
    "Nothing was allowed. Begin again in the client from which you came here.",
)
FOREIGN = (
    "This did not come from the page of sm",
    "Nothing was allowed. Allow cookies for this page and begin again in the client.",
)


class ConsentForm(Struct, frozen=True):
    """Binds a page to the browser that shows it: `nonce` is in a cookie there, too."""

    nonce: str
    request: str


class PageRequest(Struct, frozen=True):
    """A request as it came with the page, its content, and its client."""

    sealed: str
    request: GrantRequest
    client: RegisteredClient

    @property
    def host(self) -> str:
        """Host that gets the answer."""
        return AnyUrl(self.request.redirect_uri).host or ""


class Consent:
    """Shows the page and takes the answer."""

    def __init__(self, provider: Provider, secret_file: Path) -> None:
        """Keep the secret's file. It is read again each time, so it can be replaced any moment."""
        self._provider = provider
        self._secret_file = secret_file
        self._tries = Tries()
        self._is_secure = provider.origin.startswith("https:")
        self._cookie = "__Host-sm-form" if self._is_secure else "sm-form"

    def routes(self) -> list[Route]:
        """Return the routes of the page."""
        app = RequestBodyLimitMiddleware(request_response(self._answer), BODY_LIMIT)
        return [Route(PAGE, app, methods=["GET", "POST"])]

    async def _answer(self, http: HttpRequest) -> Response:
        if http.method == "POST":
            return await self._decide(http)
        asked = await self._asked(http.query_params.get("request", ""))
        return self._page(http, asked) if asked else _note(400, *STALE)

    async def _decide(self, http: HttpRequest) -> Response:
        fields = await _fields(http)
        if not self._is_ours(http, fields):
            return _note(403, *FOREIGN)
        asked = await self._asked(fields.get("request", ""))
        if asked is None:
            return _note(400, *STALE)
        if fields.get("answer") != "allow":
            return self._send_back(asked, error="access_denied")
        return await self._check(http, asked, fields.get("secret", ""))

    async def _check(self, http: HttpRequest, asked: PageRequest, given: str) -> Response:
        """Allow the request, if the secret is right."""
        if wait_s := self._tries.wait_s():
            fault = f"Too many wrong secrets. Try again in {wait_s} seconds."
            return self._page(http, asked, fault, 429, {"Retry-After": str(wait_s)})
        # Count first: another try may come while this one is checked.
        self._tries.note_wrong()
        known = await anyio.to_thread.run_sync(secret.read, self._secret_file)
        if not hmac.compare_digest(_bytes(given.strip()), _bytes(known)):
            warn(f"a wrong secret was entered for '{asked.client.client_name or asked.host}'")
            return self._page(http, asked, "That is not the secret.", 403)
        self._tries.note_right()
        code = secrets.token_urlsafe(32)
        grant = await self._provider.grant(code, asked.client, asked.request)
        say(f"allowed '{grant.name}' at {grant.host}; 'sm mcp revoke {grant.id}' takes it back")
        return self._send_back(asked, code=code)

    async def _asked(self, sealed: str) -> PageRequest | None:
        request = self._provider.read_request(sealed)
        client = await self._provider.get_client(request.client_id) if request else None
        return PageRequest(sealed, request, client) if request and client else None

    def _is_ours(self, http: HttpRequest, fields: dict[str, str]) -> bool:
        """Say whether we have shown the form in this browser."""
        origin = http.headers.get("origin")
        seals = self._provider.grants.seals()
        form = seals.open(fields.get("form", ""), ConsentForm)
        nonce = http.cookies.get(self._cookie, "")
        return (
            origin in (None, self._provider.origin)
            and form is not None
            and hmac.compare_digest(_bytes(form.nonce), _bytes(nonce))
            and form.request == fields.get("request")
        )

    def _page(
        self,
        http: HttpRequest,
        asked: PageRequest,
        fault: str = "",
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Response:
        # An existing nonce stays. Otherwise the page in another tab would become invalid.
        nonce = http.cookies.get(self._cookie) or secrets.token_urlsafe(24)
        form = self._provider.grants.seals().close(ConsentForm(nonce, asked.sealed))
        name = asked.client.client_name or ""
        question = Question(name, asked.host, PAGE, asked.sealed, form, fault)
        shown = HTMLResponse(page.ask(question), status, page.HEADERS | (headers or {}))
        shown.set_cookie(
            self._cookie, nonce, secure=self._is_secure, httponly=True, samesite="strict"
        )
        return shown

    def _send_back(self, asked: PageRequest, **said: str) -> Response:
        """Send the browser to the client; `iss` says which server sends it (RFC 9207)."""
        state, issuer = asked.request.state, self._provider.origin
        uri = construct_redirect_uri(asked.request.redirect_uri, **said, state=state, iss=issuer)
        return RedirectResponse(uri, 303, page.HEADERS)


async def _fields(http: HttpRequest) -> dict[str, str]:
    body = await http.body()
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=FIELDS))
    except ValueError:  # too many, or no text
        return {}


def _note(status: int, title: str, text: str) -> Response:
    return HTMLResponse(page.tell(title, text), status, page.HEADERS)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
