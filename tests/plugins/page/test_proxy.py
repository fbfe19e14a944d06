"""The page behind a real proxy with TLS, set up as docs/PAGE.md says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
import yaml
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from sm.plugins.page.logins import make_csrf_token
from sm.sessions import pause
from sm.sessions.project import Project
from sm.store import events
from tests.forges.hook import Hook
from tests.helpers import HANG_S, put_session, wait_for
from tests.plugins.page.client import PLEDGE
from tests.plugins.page.proxy import Proxy
from tests.serving import Served, serving

pytestmark = pytest.mark.long_lived

READS = "0123456789abcdef-only-reads"
SECRET = "0123456789abcdef-a-secret"
REST = {"act": "pause", "session": "dev-harb-3"}


@dataclass
class Behind:
    """A server behind a proxy, and a browser before that."""

    served: Served
    proxy: Proxy
    client: httpx2.Client
    key: str

    def log_in(self) -> httpx2.Response:
        return self.send("/page/login", key=self.key)

    def send(self, path: str, **fields: str) -> httpx2.Response:
        """A form of the page."""
        ours = {"origin": self.proxy.url, "sec-fetch-site": "same-origin"}
        return self.client.post(path, data=fields, headers=ours)

    def act(self) -> httpx2.Response:
        found = PLEDGE.search(self.client.get("/").text)
        return self.send("/page/act", csrf=found[1] if found else "", **REST)


@pytest.fixture(params=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy(request.param, tmp_path / "proxy")
    yield made
    made.stop()


@pytest.fixture
def behind(project: Project, proxy: Proxy, tmp_path: Path) -> Iterator[Behind]:
    put_session(project, 3, alive=False)
    readers = tmp_path / "readers"
    readers.write_text(f"# prometheus\n{READS}\n")
    readers.chmod(0o600)
    options = ("--public-url", proxy.url, "--open", "--read-token-file", str(readers))
    with ExitStack() as running:
        served = running.enter_context(serving(tmp_path, *options))
        assert served.process.stdout
        link = served.process.stdout.readline().split()[-1]
        assert link.startswith(f"{proxy.url}/page/login?key=")
        proxy.start(served.url)
        client = httpx2.Client(base_url=proxy.url, verify=proxy.trust, timeout=HANG_S)
        yield Behind(served, proxy, running.enter_context(client), link.split("key=")[1])


def test_nobody_reads_or_acts_without_a_login_or_a_token(behind: Behind) -> None:
    for path in ("/", "/sessions", "/needs", "/health", "/page/stream", "/page/session/dev-harb-3"):
        assert behind.client.get(path).status_code == 401, path
        assert behind.served.get("/sessions").status == 403, "not by the address here either"
    assert behind.client.post("/pause", json={}).status_code == 401
    assert behind.client.get("/sessions", headers={"host": "localhost"}).status_code == 403
    bearer = {"authorization": f"Bearer {READS}"}
    assert behind.client.get("/sessions", headers=bearer).status_code == 200
    assert behind.client.post("/pause", json={}, headers=bearer).status_code == 403


def test_a_browser_logs_in_reads_and_acts_until_its_login_is_over(
    behind: Behind, project: Project
) -> None:
    assert "Log in" in behind.client.get("/").text
    said = behind.log_in()
    assert (said.status_code, said.headers["location"]) == (303, "/")
    assert said.headers["set-cookie"].startswith("__Host-sm-page=")
    assert "dev-harb-3" in behind.client.get("/").text
    assert behind.act().status_code == 200
    assert pause.read(project.root).pauses
    file = project.root.plugins / "page" / "logins.json"
    book = json.loads(file.read_text())
    book["until"] = dict.fromkeys(book["until"], 1.0)
    file.write_text(json.dumps(book))
    said = behind.client.get("/")
    assert said.status_code == 401
    assert '<a class="quiet" href="/page/login">' in said.text


def test_a_change_is_told_at_once_though_the_proxy_buffers(
    behind: Behind, project: Project
) -> None:
    behind.log_in()
    with behind.client.stream("GET", "/page/stream") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith("data:"))
        project.record(events.Monitor(session="dev-harb-3", state="started"))
        told = next(line for line in lines if line.startswith("data:"))
        assert "dev-harb-3" in told


def connect_to_terminal(behind: Behind, **headers: str) -> ClientConnection:
    """A WebSocket through the proxy, with the cookies of the browser."""
    cookies = "; ".join(f"{name}={text}" for name, text in behind.client.cookies.items())
    return connect(
        f"{behind.proxy.url.replace('https', 'wss')}/page/terminal/dev-harb-3",
        ssl=behind.proxy.trust,
        additional_headers={"Origin": behind.proxy.url, "Cookie": cookies} | headers,
        open_timeout=HANG_S,
        close_timeout=1,
        proxy=None,
    )


def refuse(behind: Behind, **headers: str) -> int:
    with pytest.raises(InvalidStatus) as refused, connect_to_terminal(behind, **headers):
        pass
    return refused.value.response.status_code


def test_a_websocket_is_passed_on_to_who_may_and_takes_no_keys_of_who_only_reads(
    behind: Behind,
) -> None:
    assert refuse(behind) == 401
    assert behind.send("/page/login", key=READS).status_code == 303
    assert refuse(behind, Origin="https://evil.example") == 403
    assert refuse(behind, Origin="http://127.0.0.1:8420") == 403
    # As a proxy that asks for a password itself lets a browser send with all that it asks for.
    assert refuse(behind, Origin="null", Authorization="Basic YTpi") == 403
    bearer = {"Authorization": f"Bearer {READS}"}
    for more in ({}, bearer):
        with connect_to_terminal(behind, **more) as socket:
            csrf = make_csrf_token(behind.client.cookies["__Host-sm-page"])
            socket.send(json.dumps({"what": "type", "csrf": csrf}))
            words = (json.loads(word) for word in socket if isinstance(word, str))
            told = next(word for word in words if word["what"] == "refused")
            assert "this login only reads" in told["why"]


def test_while_the_server_is_gone_the_proxy_says_so_and_the_login_stays(
    behind: Behind, tmp_path: Path
) -> None:
    behind.log_in()
    assert behind.served.stop()[0] == 0
    assert behind.client.get("/").status_code == 502
    place = ("--port", str(behind.served.port))
    with serving(tmp_path, "--public-url", behind.proxy.url, place=place):
        wait_for(lambda: behind.client.get("/").status_code == 200, "the page")
        assert behind.act().status_code == 200


def test_a_proxy_that_is_started_anew_goes_on(behind: Behind) -> None:
    behind.log_in()
    behind.proxy.stop()
    behind.proxy.start(behind.served.url)
    assert behind.act().status_code == 200


@pytest.mark.parametrize("at_socket", [False, True])
def test_a_server_without_any_token_is_closed_as_well(
    project: Project, proxy: Proxy, tmp_path: Path, at_socket: bool
) -> None:
    """At a socket the proxy even is our own user, who alone needs no token there."""
    put_session(project, 3, alive=False)
    path = tmp_path / "sm.sock"
    place = ("--socket", str(path)) if at_socket else ("--port", "0")
    with serving(tmp_path, "--public-url", proxy.url, place=place) as served:
        proxy.start(f"http://unix:{path}:/" if at_socket else served.url)
        with httpx2.Client(base_url=proxy.url, verify=proxy.trust, timeout=HANG_S) as client:
            for target in ("/", "/sessions", "/page/changes"):
                assert client.get(target).status_code == 401
            assert client.post("/pause", json={}).status_code == 401
            assert client.get("/page/login").status_code == 200


def test_webhooks_come_through_it(project: Project, proxy: Proxy, tmp_path: Path) -> None:
    forge = {
        "kind": "github",
        "repository": "harbor/harb",
        "url": "http://127.0.0.1:9",
        "token_env": "HARB_TOKEN",
        "webhook_secret_env": "HARB_SECRET",
    }
    config = tmp_path / "hooks.yaml"
    config.write_text(
        yaml.safe_dump({"name": "harb", "repo": str(tmp_path / "clone"), "forge": forge})
    )
    env = {"SM_CONFIG": str(config), "HARB_SECRET": SECRET, "HARB_TOKEN": "x" * 20}
    with serving(tmp_path, "--public-url", proxy.url, env=env) as served:
        proxy.start(served.url)
        url = f"{proxy.url}/webhooks/harb"
        body = json.dumps({"zen": "x" * 2_000_000, "nonce": "1a2b"}).encode()
        headers = Hook("github", url, SECRET).headers("ping", body) | {"Host": urlsplit(url).netloc}
        with httpx2.Client(verify=proxy.trust, timeout=HANG_S) as client:
            said = client.post(url, content=body, headers=headers)
            assert (said.status_code, said.json()) == (202, {"status": "pong"})
            forged = headers | {"X-Hub-Signature-256": "sha256=" + "0" * 64}
            assert client.post(url, content=body, headers=forged).status_code == 403
