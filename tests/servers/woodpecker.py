"""A real Woodpecker on loopback, beside a forge: its server, its agent, an account's token."""

from __future__ import annotations

import http.client
import json
import re
import secrets
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from sm.adapters.forge.model import BOT
from tests.helpers import wait_for
from tests.ports import find_free_port
from tests.servers.forge import ForgeServer
from tests.servers.process import Process, send, wait_until_it_answers

SIGNED_IN = "X-WEBAUTH-USER"
"""The header by which the forges of these tests take anybody's word for who it is."""
FILE = ".woodpecker.yaml"
HOPS = 6


HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class Browser:
    """As much of one as a person needs to sign in: `page` is what it shows."""

    def __init__(self) -> None:
        """It shows nothing, and has no cookies of any server."""
        self.page = ""
        self._cookies: dict[str, dict[str, str]] = {}

    def visit(
        self, method: str, url: str, form: str = "", more: dict[str, str] | None = None
    ) -> None:
        """Go to a page, and to where it leads."""
        for _ in range(HOPS):
            status, where = self._ask(method, url, form, more or {})
            if status not in (302, 303, 307):
                assert status == 200, f"{method} {url}: {status} {self.page[-500:]}"
                return
            method, form, url = "GET", "", urljoin(url, where)
        raise AssertionError(f"{url} leads round in a circle")

    def _ask(self, method: str, url: str, form: str, more: dict[str, str]) -> tuple[int, str]:
        split = urlsplit(url)
        cookies = self._cookies.setdefault(split.netloc, {})
        headers = {SIGNED_IN: BOT, **more}
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        path = f"{split.path}?{split.query}" if split.query else split.path
        with closing(http.client.HTTPConnection(split.netloc, timeout=60)) as client:
            client.request(method, path, form or None, headers)
            answer = client.getresponse()
            self.page = answer.read().decode()
        for one in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = one.partition(";")[0].partition("=")
            cookies[name] = value
        return answer.status, answer.headers.get("Location", "")


class WoodpeckerServer:
    """A server with its agent, for the repositories of `forge`."""

    def __init__(self, program: Path, agent: Path, forge: ForgeServer, folder: Path) -> None:
        """Nothing runs yet; the application is registered at the forge."""
        folder.mkdir(mode=0o700, parents=True)
        self.forge, self.port, self.token = forge, find_free_port(), ""
        self.url = f"http://127.0.0.1:{self.port}"
        forge.add_account(BOT)
        application = {
            "name": f"ci-{self.port}",
            "redirect_uris": [f"{self.url}/authorize"],
            "confidential_client": True,
        }
        made = forge.ask("POST", "/user/applications/oauth2", application, BOT)
        secret, speech, name = secrets.token_hex(16), find_free_port(), forge.kind.upper()
        self.server = Process(
            [program],
            folder,
            {
                "WOODPECKER_HOST": self.url,
                "WOODPECKER_SERVER_ADDR": f"127.0.0.1:{self.port}",
                "WOODPECKER_GRPC_ADDR": f"127.0.0.1:{speech}",
                "WOODPECKER_AGENT_SECRET": secret,
                "WOODPECKER_OPEN": "true",
                "WOODPECKER_ADMIN": BOT,
                f"WOODPECKER_{name}": "true",
                f"WOODPECKER_{name}_URL": forge.url,
                f"WOODPECKER_{name}_CLIENT": made["client_id"],
                f"WOODPECKER_{name}_SECRET": made["client_secret"],
                "WOODPECKER_DATABASE_DRIVER": "sqlite3",
                "WOODPECKER_DATABASE_DATASOURCE": str(folder / "woodpecker.sqlite"),
            },
        )
        self.agent = Process(
            [agent],
            folder,
            {
                "WOODPECKER_SERVER": f"127.0.0.1:{speech}",
                "WOODPECKER_AGENT_SECRET": secret,
                "WOODPECKER_AGENT_CONFIG_FILE": str(folder / "agent.conf"),
                "WOODPECKER_BACKEND": "local",
                "WOODPECKER_HEALTHCHECK": "false",
            },
        )

    def start(self) -> None:
        """Serve, and have an account and its token."""
        self.server.start()
        wait_until_it_answers(self.server, self.port, "/healthz")
        self.agent.start()
        self.token = self._sign_in()

    def stop(self) -> None:
        """End both."""
        self.agent.stop()
        self.server.stop()

    @property
    def version(self) -> str:
        """Its version."""
        return str(send(self.port, "GET", "/version")["version"])

    def _sign_in(self) -> str:
        """What a person does in a browser; the token of the account's page."""
        browser = Browser()
        browser.visit("GET", f"{self.url}/authorize")
        fields = dict(HIDDEN.findall(browser.page))
        assert fields.get("client_id"), browser.page[-2000:]
        grant = f"{self.forge.url}/login/oauth/grant"
        browser.visit("POST", grant, urlencode({**fields, "granted": "true"}))
        browser.visit("GET", f"{self.url}/web-config.js")
        found = re.search(r'CSRF\s*=\s*"([^"]+)"', browser.page)
        assert found, browser.page
        browser.visit("POST", f"{self.url}/api/user/token", more={"X-CSRF-TOKEN": found[1]})
        return browser.page

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """A request beside `sm`."""
        return send(self.port, method, f"/api{path}", body, token=f"Bearer {self.token}")

    def activate(self, repository: str) -> int:
        """Have it run on every push to a repository; its own id of that."""
        known = self.forge.ask("GET", f"/repos/{repository}")
        return int(self.ask("POST", f"/repos?forge_remote_id={known['id']}")["id"])

    def require_approvals(self, ident: int) -> None:
        """Have every pipeline of a repository wait for a person's approval."""
        self.ask("PATCH", f"/repos/{ident}", {"require_approval": "all_events"})

    def wait_for_end(self, ident: int, commit: str) -> dict[str, Any]:
        """Wait until the pipeline of a commit is over, or waits for a person; as it is then."""

        def find() -> dict[str, Any] | None:
            listed = self.ask("GET", f"/repos/{ident}/pipelines")
            mine = [one for one in listed if one["commit"] == commit]
            over = [one for one in mine if one["status"] not in ("pending", "running", "created")]
            return over[0] if over else None

        found = wait_for(find, "the pipeline", every_s=0.3)
        assert found
        return found


def write_pipeline(*commands: str) -> str:
    """A pipeline with one step, `unit`, which needs no clone."""
    step = {"name": "unit", "image": "bash", "commands": list(commands)}
    whole = {"when": [{"event": "push"}], "skip_clone": True, "steps": [step]}
    return json.dumps(whole)  # JSON is YAML
