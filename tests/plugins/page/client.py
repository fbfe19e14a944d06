"""The whole server as an application in this process, and a browser of it without a screen."""

from __future__ import annotations

import asyncio
import html
import re
from html.parser import HTMLParser
from urllib.parse import quote

import httpx2
from starlette.types import ASGIApp

from sm.plugins.http.app import make_application
from sm.sessions.machine import Machine
from sm.web.guard import GuardRules

ORIGIN = "http://127.0.0.1:8420"
KEY = "k" * 64
TOKEN = "t" * 32
NEED = re.compile(r'<li class="need [^>]*data-key="([^"]+)"')
PLEDGE = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


def make_server(
    machine: Machine,
    *,
    token: str = "",
    key: str = KEY,
    rules: GuardRules | None = None,
    key_reads: bool = False,
) -> ASGIApp:
    return make_application(machine, "1", rules or GuardRules(token), {}, key, key_reads=key_reads)


class Browser:
    """Keeps cookies, and sends what a browser sends with a form of the page."""

    def __init__(self, server: ASGIApp, origin: str = ORIGIN) -> None:
        self.server, self.origin = server, origin
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return self.ask("GET", path, headers)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx2.Response:
        """A form of our own page; `headers` in the place of a browser's, '' for none."""
        ours = {"origin": self.origin, "sec-fetch-site": "same-origin"}
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        sent = {name: text for name, text in (ours | named).items() if text}
        return self.ask("POST", path, sent, fields)

    def log_in(self, secret: str = KEY) -> httpx2.Response:
        return self.post("/page/login", {"key": secret})

    def read_needs(self) -> str:
        """Read what belongs to each line of the inbox, in one."""
        keys = NEED.findall(self.get("/").text)
        return "\n".join(
            self.get(f"/page/need?key={quote(html.unescape(key))}").text for key in keys
        )

    def act(self, **fields: str) -> httpx2.Response:
        """Send a form with the csrf that the page has for this browser."""
        found = PLEDGE.search(self.get("/").text)
        return self.post("/page/act", {"csrf": found[1] if found else ""} | fields)

    def ask(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        fields: dict[str, str] | None = None,
    ) -> httpx2.Response:
        """Send a request as it is."""

        async def ask() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self.server)
            async with httpx2.AsyncClient(
                transport=transport, base_url=self.origin, cookies=self.cookies
            ) as client:
                return await client.request(method, path, headers=headers, data=fields or None)

        answer = asyncio.run(ask())
        self.cookies |= dict(answer.cookies)
        return answer


class Read(HTMLParser):
    """What a browser makes of HTML: its elements, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data
