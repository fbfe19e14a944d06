"""A remote MCP client, its person, and his browser: what asks `sm mcp --http` for permission."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from tests.helpers import HANG_S
from tests.ports import find_free_port
from tests.serving import Served, serving

CALLBACK = "http://127.0.0.1:9/callback"
CHAT = "https://claude.ai/api/mcp/auth_callback"
NOTHING: Mapping[str, str] = MappingProxyType({})
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@contextlib.contextmanager
def remote_server(
    folder: Path, *options: str, clean: bool = True, env: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """`sm mcp --http` that remote clients may ask, without a proxy in front."""
    port = str(find_free_port())
    public = f"http://127.0.0.1:{port}"
    more = ("--port", port, "--public-url", public, *options)
    with serving(folder, *more, verb=("mcp", "--http"), clean=clean, base=env) as served:
        yield served


@dataclass
class Reply:
    """An answer to a request, as it came."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def fields(self) -> dict[str, str]:
        """What the form of a page would send."""
        reader = _Inputs()
        reader.feed(self.body)
        return reader.found

    @property
    def said(self) -> dict[str, str]:
        """What is in the query of the place that it leads to."""
        return dict(parse_qsl(urlsplit(self.headers["location"]).query))


class _Inputs(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "input" and known.get("type") == "hidden":
            self.found[known["name"] or ""] = known["value"] or ""


@dataclass
class Browser:
    """Keeps cookies and follows redirects within the server."""

    served: Served
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.served.port}"

    def ask(
        self, method: str, target: str, body: str = "", headers: Mapping[str, str] = NOTHING
    ) -> Reply:
        place = urlsplit(target)
        path = f"{place.path}?{place.query}" if place.query else place.path
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = ({"Cookie": cookie} if cookie else {}) | dict(headers)
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=HANG_S)
        with contextlib.closing(connection):
            connection.request(method, path, body.encode() or None, sent)
            answer = connection.getresponse()
            found = Reply(
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read().decode(),
            )
        if fresh := found.headers.get("set-cookie"):
            name, _, value = fresh.partition(";")[0].partition("=")
            self.cookies[name] = value
        return found

    def open(self, url: str) -> Reply:
        """The page, or the answer that leads away from the server."""
        found = self.ask("GET", url)
        while found.headers.get("location", "").startswith("/"):
            found = self.ask("GET", found.headers["location"])
        return found

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Reply:
        return self.ask("POST", path, urlencode(fields), FORM | headers)

    def answer(self, page: Reply, secret: str, answer: str = "allow", **changed: str) -> Reply:
        """What the person's answer to the page comes to."""
        fields = page.fields | {"secret": secret, "answer": answer} | changed
        return self.post("/approve", fields, Origin=self.origin)


@dataclass
class Registered:
    """A client that was written by hand, to do what a good one never would."""

    browser: Browser
    id: str
    secret: str
    redirect_uri: str
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def url(self, **changed: str) -> str:
        """Where it sends the person."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "state": "the state",
        }
        return f"/authorize?{urlencode(asked | changed)}"

    def page(self, **changed: str) -> Reply:
        return self.browser.open(self.url(**changed))

    def code(self, secret: str) -> str:
        return self.browser.answer(self.page(), secret).said["code"]

    def exchange(self, code_given: str, **changed: str) -> Reply:
        asked = {
            "grant_type": "authorization_code",
            "code": code_given,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
        }
        return self.post("/token", asked | changed)

    def refresh(self, token: str) -> Reply:
        return self.post("/token", {"grant_type": "refresh_token", "refresh_token": token})

    def revoke(self, token: str, **more: str) -> Reply:
        return self.post("/revoke", {"token": token} | more)

    def post(self, path: str, fields: Mapping[str, str]) -> Reply:
        own = {"client_id": self.id} | ({"client_secret": self.secret} if self.secret else {})
        return self.browser.post(path, own | dict(fields))

    def call(self, token: str) -> int:
        """The status of a call of the tools with that token."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token}",
        }
        return self.browser.ask("POST", "/mcp", body, headers).status


def register(browser: Browser, **metadata: object) -> Reply:
    asked = {"client_name": "Claude", "redirect_uris": [CALLBACK]} | metadata
    return browser.ask("POST", "/register", json.dumps(asked))


def registered(browser: Browser, **metadata: object) -> Registered:
    found = register(browser, **metadata)
    assert found.status == 201, found
    said = found.json
    ident, secret = said["client_id"], said.get("client_secret", "")
    return Registered(browser, ident, secret, said["redirect_uris"][0])


class Memory:
    """What the SDK's client remembers."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Remote:
    """The official SDK's client; `secret` is what its person enters when he is asked."""

    def __init__(self, served: Served, secret: str) -> None:
        self.served, self.secret, self.memory = served, secret, Memory()
        self.asked = 0
        self.auth: OAuthClientProvider | None = None
        self._said: dict[str, str] = {}

    async def _redirect(self, url: str) -> None:
        self.asked += 1
        browser = Browser(self.served)
        self._said = browser.answer(browser.open(url), self.secret).said

    async def _callback(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self._said["code"], state=self._said["state"], iss=self._said["iss"]
        )

    def run(self, talk: Callable[[Client], Awaitable[Any]]) -> Any:
        """What `talk` returns, with a client that is let in."""

        async def connected() -> Any:
            self.auth = OAuthClientProvider(
                self.served.url,
                OAuthClientMetadata(client_name="Claude", redirect_uris=[AnyUrl(CALLBACK)]),
                self.memory,
                self._redirect,
                self._callback,
            )
            with anyio.fail_after(60):
                async with (
                    httpx2.AsyncClient(auth=self.auth, timeout=HANG_S) as web,
                    Client(streamable_http_client(self.served.url, http_client=web)) as client,
                ):
                    return await talk(client)

        return anyio.run(connected)
