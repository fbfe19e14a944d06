"""Webhooks at `sm serve`: real deliveries over HTTP, and what nobody should send."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator

from sm.adapters.forge.errors import UnreachableError
from sm.base.errors import SmError
from sm.issues.look.webhooks import HeardWebhooks, read_heard_webhooks
from sm.plugins.http import openapi
from sm.plugins.http.routes import ENDPOINTS, WEBHOOK_LIMIT
from sm.plugins.http.webhooks import APART_S, REMEMBERED, ForgeLooks
from sm.store.paths import Root
from sm.web.answers import HttpError
from sm.web.bodies import Room
from tests.conftest import sealed_environment
from tests.forges.hook import Hook
from tests.forges.sides import RemoteSide, remote_side
from tests.forked import run_sm
from tests.helpers import HANG_S, wait_for
from tests.hub import make_hub
from tests.serving import Said, Served, heard, serving

SECRET = "0123456789abcdef-a-secret"
TOKEN = "fedcba9876543210-a-token"
HEAD = "5f" * 20


@dataclass
class Receiving:
    """A server that takes webhooks for `harb`, and a forge that delivers them."""

    served: Served
    side: RemoteSide
    hook: Hook
    root: Root

    def heard(self) -> HeardWebhooks:
        return read_heard_webhooks(self.root.project("harb"))

    def looks(self) -> int:
        """How often the forge was looked at: each time begins with one conditional request."""
        return sum(one.query.get("per_page") == "1" for one in self.side.site.asked)

    def post(self, body: bytes, headers: dict[str, str], project: str = "harb") -> Said:
        names = {name.lower().replace("-", "_"): value for name, value in headers.items()}
        return self.served.ask("POST", f"/webhooks/{project}", body, names)

    def deliver(self, event: str, payload: dict[str, Any] | None = None) -> Said:
        """As the forge does; each delivery is another one."""
        whole = {"repository": {"full_name": "harbor/harb"}, "nonce": secrets.token_hex(8)}
        body = json.dumps({**whole, **(payload or {})}).encode()
        return self.post(body, self.hook.headers(event, body))


def write_config(folder: Path, side: RemoteSide, **forge: object) -> Path:
    """The project `harb` of that forge, with a secret for webhooks, and `plain` without one."""
    place: dict[str, object] = {
        "kind": side.kind,
        "repository": side.state.name,
        "url": side.site.url,
        "token_file": str(side.token_file("sm")),
    }
    common = {"repo": str(side.hub.repository.clone)}
    secret = forge or {"webhook_secret_env": "HARB_SECRET"}
    projects = [
        {"name": "harb", "forge": place | secret, **common},
        {"name": "plain", "forge": place, **common, "branch_prefix": "plain"},
    ]
    path = folder / "hooks.yaml"
    path.write_text(yaml.safe_dump({"projects": projects, "state_root": str(folder / "state")}))
    return path


@pytest.fixture(scope="module")
def receiving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiving]:
    """One for all: whatever was sent to it, it has to answer the next."""
    folder = tmp_path_factory.mktemp("receiving")
    root = Root(folder / "state")
    base = sealed_environment(folder)
    with ExitStack() as running:
        patch = running.enter_context(pytest.MonkeyPatch.context())
        for name, value in base.items():
            patch.setenv(name, value)
        for made in (root.path, root.private, root.projects):
            made.mkdir(mode=0o700)
        side = running.enter_context(
            remote_side("github", make_hub(folder), root.project("harb").path)
        )
        config = write_config(folder, side)
        env = {"SM_CONFIG": str(config), "HARB_SECRET": SECRET}
        served = running.enter_context(serving(folder, env=env, base=base))
        hook = Hook("github", f"{served.url}/webhooks/harb", SECRET)
        yield Receiving(served, side, hook, root)


# What the forge delivers


def test_what_matters_is_accepted_and_noted(receiving: Receiving) -> None:
    said = receiving.deliver("check_run", {"check_run": {"head_sha": HEAD}})
    assert (said.status, said.body) == (202, {"status": "accepted"})
    known = receiving.heard()
    assert (known.event, known.commits, known.at) == ("check_run", (HEAD,), known.woke_at)


def test_a_try_and_what_does_not_matter_start_no_look(receiving: Receiving) -> None:
    woke_at = receiving.heard().woke_at
    for event, payload, status in (
        ("ping", {"zen": "Design for failure."}, "pong"),
        ("star", {"action": "created"}, "ignored"),
        ("", {}, "ignored"),
        ("issues", {"repository": {"full_name": "harbor/another"}}, "ignored"),
    ):
        said = receiving.deliver(event, payload)
        assert (said.status, said.body) == (202, {"status": status}), event
        assert (receiving.heard().event, receiving.heard().woke_at) == (event, woke_at)


def test_a_delivery_counts_once(receiving: Receiving) -> None:
    body = json.dumps({"action": "opened", "nonce": secrets.token_hex(8)}).encode()
    headers = receiving.hook.headers("issues", body)
    assert receiving.post(body, headers).body == {"status": "accepted"}
    at = receiving.heard().at
    assert receiving.post(body, headers).body == {"status": "repeated"}
    replayed = headers | {"X-GitHub-Delivery": secrets.token_hex(8)}
    assert receiving.post(body, replayed).body == {"status": "repeated"}, "its id is not signed"
    assert receiving.heard().at == at


def test_deliveries_are_remembered_within_limits(receiving: Receiving) -> None:
    """In this process: 10,000 requests would be a test of patience."""
    from sm.adapters.forge.dialect import Delivery, Webhooks
    from sm.config.load import load
    from sm.plugins.forges.webhook import GITHUB
    from sm.plugins.http.webhooks import ForgeLooks, Receiver
    from sm.sessions.project import Project

    config = load(receiving.side.hub.config, os.environ, receiving.side.folder)
    expected = Webhooks(GITHUB, SECRET, tuple)
    made = Receiver(Project(config, receiving.side.project), expected, ForgeLooks(lambda: None))

    def is_known(number: int) -> bool:
        headers = {"x-github-delivery": (str(number).encode(),)}
        return made._is_known(Delivery(headers, str(number).encode()))

    for number in range(REMEMBERED):
        assert not is_known(number)
        assert len(made._seen) <= REMEMBERED
    assert is_known(REMEMBERED - 1)
    assert not is_known(0), "the oldest are forgotten"


def test_a_storm_makes_few_looks(receiving: Receiving) -> None:
    wait_for(lambda: receiving.deliver("push").status == 202 and receiving.looks(), "a look")
    before = receiving.looks()
    for _ in range(100):
        assert receiving.deliver("issues").body == {"status": "accepted"}
    number = receiving.side.state.add("The last one", "", "ada").number
    assert receiving.deliver("issues").status == 202

    def is_seen() -> bool:
        path = receiving.root.project("harb").snapshot
        return path.exists() and f'"number":{number},' in path.read_text()

    wait_for(is_seen, "what the last of them is about")
    assert receiving.looks() - before <= 3


# What nobody should send


def refused(said: Said) -> bool:
    return (said.status, said.body) == (403, {"error": "refused"})


@pytest.mark.parametrize(
    "signature",
    [
        *("", "sha256=", "sha256=" + "0" * 64, "sha1=" + "0" * 40, "0" * 64, "x" * 10_000),
        *("sha256=" + "é" * 32, "\xff" * 71),
    ],
)
def test_a_wrong_signature_is_refused_without_a_reason(
    receiving: Receiving, signature: str
) -> None:
    before = receiving.heard()
    body = b'{"action": "opened"}'
    headers = receiving.hook.headers("issues", body) | {"X-Hub-Signature-256": signature}
    assert refused(receiving.post(body, headers))
    del headers["X-Hub-Signature-256"]
    assert refused(receiving.post(body, headers))
    assert receiving.heard() == before


def test_a_signature_of_another_body_or_secret_is_refused(receiving: Receiving) -> None:
    body = b'{"action": "opened"}'
    headers = receiving.hook.headers("issues", body)
    assert refused(receiving.post(b'{"action":"opened"}', headers))
    stranger = Hook("github", "", SECRET + "x").headers("issues", body)
    assert refused(receiving.post(body, stranger))
    for name in ("X-Gitea-Signature", "X-Gitlab-Token"):
        other = receiving.hook.headers("issues", body)
        del other["X-Hub-Signature-256"]
        assert refused(receiving.post(body, other | {name: SECRET}))


def raw(receiving: Receiving, *lines: str, body: bytes = b"") -> Said:
    """A request as it is written here."""
    head = ("POST /webhooks/harb HTTP/1.1", "Host: sm.example.org", *lines, "", "")
    with receiving.served.open() as connection:
        connection.sendall("\r\n".join(head).encode("latin-1") + body)
        return heard(connection)


def test_two_signatures_are_refused_although_one_is_right(receiving: Receiving) -> None:
    body = json.dumps({"nonce": secrets.token_hex(8)}).encode()
    lines = [f"{name}: {value}" for name, value in receiving.hook.headers("push", body).items()]
    lines = [one for one in lines if not one.startswith("Host:")]
    lines.append(f"Content-Length: {len(body)}")
    for wrong in ("sha256=" + "0" * 64, lines[-2].partition(": ")[2]):
        assert refused(raw(receiving, *lines, f"x-hub-signature-256: {wrong}", body=body))
    assert raw(receiving, *lines, body=body).body == {"status": "accepted"}


def test_a_body_in_pieces_is_read_and_signed_as_a_whole(receiving: Receiving) -> None:
    body = json.dumps({"nonce": secrets.token_hex(8)}).encode()
    lines = [f"{name}: {value}" for name, value in receiving.hook.headers("push", body).items()]
    lines = [one for one in lines if not one.startswith("Host:")]
    pieces = b"".join(b"1\r\n" + bytes([one]) + b"\r\n" for one in body) + b"0\r\n\r\n"
    said = raw(receiving, *lines, "Transfer-Encoding: chunked", body=pieces)
    assert said.body == {"status": "accepted"}


def test_a_body_that_is_too_long_is_not_read_to_its_end(receiving: Receiving) -> None:
    kind = "Content-Type: application/json"
    said = raw(receiving, kind, f"Content-Length: {WEBHOOK_LIMIT + 1}")
    assert said.status == 413
    piece = b"%x\r\n" % 0x100000 + b" " * 0x100000 + b"\r\n"
    said = raw(receiving, kind, "Transfer-Encoding: chunked", body=piece * 11 + b"0\r\n\r\n")
    assert said.status == 413
    large = json.dumps({"nonce": "x" * (WEBHOOK_LIMIT - 100)}).encode()
    assert receiving.post(large, receiving.hook.headers("push", large)).status == 202


def test_what_is_no_json_is_refused_although_it_is_signed(receiving: Receiving) -> None:
    for body, status in (
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (b"[]", 422),
    ):
        headers = receiving.hook.headers("push", body)
        assert receiving.post(body, headers).status == status, body[:10]
    body = b"payload=%7B%7D"
    form = receiving.hook.headers("push", body)
    form["Content-Type"] = "application/x-www-form-urlencoded"
    assert receiving.post(body, form).status == 415


@pytest.mark.parametrize(
    "project", ["plain", "none", "", "harb/", "HARB", "..%2Fharb", "harb%00", "x" * 5000]
)
def test_there_is_nothing_for_a_project_without_a_secret(
    receiving: Receiving, project: str
) -> None:
    body = b"{}"
    said = receiving.post(body, receiving.hook.headers("push", body), project)
    assert (said.status, said.body) == (404, {"error": "there is nothing here: see /openapi.json"})


def test_only_a_post_is_let_in(receiving: Receiving) -> None:
    assert receiving.served.get("/webhooks/harb").status == 405
    assert receiving.served.get("/webhooks/harb", host="sm.example.org").status == 403
    for path in ("/webhooks", "/sessions/x/kill", "/hooks/claude", "/webhooks/../sessions"):
        said = receiving.served.ask("POST", path, b"{}", {"host": "sm.example.org"})
        assert said.status in (403, 404), path
        assert "session" not in json.dumps(said.body)


def test_many_bodies_at_once_find_no_room() -> None:
    room = Room(100)
    with room.share() as first:
        first.take(60)
        with room.share() as second:
            second.take(40)
            with pytest.raises(HttpError, match="too much is being sent") as refusal:
                second.take(1)
            assert refusal.value.status == 503
        first.take(40)
    with room.share() as again:
        again.take(100)


# The server


def test_with_a_token_only_webhooks_do_without(receiving: Receiving, tmp_path: Path) -> None:
    config = write_config(tmp_path, receiving.side)
    (tmp_path / "state").mkdir(mode=0o700)
    env = {"SM_CONFIG": str(config), "HARB_SECRET": SECRET, "SM_SERVE_TOKEN": TOKEN}
    with serving(tmp_path, env=env) as served:
        hook = Hook("github", f"{served.url}/webhooks/harb", SECRET)
        assert hook.deliver("ping") == 202
        assert hook.deliver("star", {"nonce": 1}) == 202
        assert served.post("/hooks/claude", {}).status == 401
        assert served.get("/webhooks/harb").status == 401
        assert served.post("/webhooksx", {}).status == 401
        shown = served.ask("GET", "/openapi.json", headers={"authorization": f"Bearer {TOKEN}"})
        assert shown.body["paths"]["/webhooks/{project}"]["post"]["security"] == []


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        ({"webhook_secret_env": "HARB_NONE"}, "there is no webhook secret in the variable"),
        ({"webhook_secret_file": "empty"}, "there is no webhook secret in '"),
        ({"webhook_secret_file": "open"}, "others can read the webhook secret"),
        ({"webhook_secret_file": "nowhere"}, "there is no webhook secret file"),
        ({"webhook_secret_file": "short"}, "cannot be used: it is shorter than 16 characters"),
        ({"webhook_secret_command": "false"}, "gives no webhook secret"),
    ],
)
def test_a_secret_that_protects_nothing_is_refused_at_start(
    receiving: Receiving, tmp_path: Path, forge: dict[str, object], said: str
) -> None:
    for name, text, mode in (
        ("empty", "\n", 0o600),
        ("open", SECRET, 0o644),
        ("short", "a", 0o600),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    config = write_config(tmp_path, receiving.side, **forge)
    (tmp_path / "state").mkdir(mode=0o700)
    env = os.environ | {"SM_CONFIG": str(config)}
    done = run_sm("serve", "--port", "0", env=env, cwd=tmp_path)
    assert done.returncode != 0
    assert said in done.stderr
    assert done.stdout == "", "it does not listen"


def test_without_a_secret_the_endpoint_is_not_there() -> None:
    with_it, without = (
        openapi.describe([each for each in ENDPOINTS if all_ or not each.signed], "1", token=False)
        for all_ in (True, False)
    )
    assert set(with_it["paths"]) - set(without["paths"]) == {"/webhooks/{project}"}
    OpenAPIV31SpecValidator(with_it).validate()


@dataclass
class Forge:
    """A forge whose looks, and the pauses between them, end when the test lets them."""

    started: int = 0
    pauses: list[float] = field(default_factory=list)
    look_over: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    pause_over: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    error: Exception | None = None

    def look(self) -> None:
        self.started += 1
        assert self.look_over.acquire(timeout=HANG_S)
        if self.error:
            raise self.error

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        assert self.pause_over.acquire(timeout=HANG_S)


def test_a_storm_makes_one_look_and_one_to_come() -> None:
    forge = Forge()
    looks = ForgeLooks(forge.look, forge.sleep)
    for _ in range(1000):
        looks.ask()
    wait_for(lambda: forge.started == 1, "the look")
    for _ in range(1000):
        looks.ask()
    assert forge.started == 1, "one at a time"
    forge.look_over.release()
    wait_for(lambda: forge.pauses, "the pause after it")
    for _ in range(1000):
        looks.ask()
    assert (forge.started, forge.pauses) == (1, [APART_S]), "and not at once the next"
    forge.pause_over.release()
    wait_for(lambda: forge.started == 2, "the one to come")
    forge.look_over.release()
    forge.pause_over.release(10)
    wait_for(lambda: len(forge.pauses) == 2, "its end")
    looks.ask()
    wait_for(lambda: forge.started == 3, "a look after a quiet time")
    forge.look_over.release()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UnreachableError("it is down"), ""),
        (SmError("no such clone"), "sm: no such clone\n"),
        (RuntimeError("a mistake"), "RuntimeError: a mistake\n"),
    ],
)
def test_a_look_that_fails_does_not_keep_the_next_one_from_it(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    forge = Forge(error=error)
    looks = ForgeLooks(forge.look, forge.sleep)
    for count in (1, 2):
        looks.ask()
        wait_for(lambda count=count: forge.started == count, "the look")  # type: ignore[misc]
        forge.look_over.release()
        wait_for(lambda count=count: len(forge.pauses) == count, "its end")  # type: ignore[misc]
        forge.pause_over.release()
    assert capsys.readouterr().err.endswith(said)


def test_a_thread_that_cannot_be_started_does_not_keep_the_next_one_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forge = Forge()
    looks = ForgeLooks(forge.look, forge.sleep)

    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError):
            looks.ask()
    looks.ask()
    wait_for(lambda: forge.started == 1, "the look")
    forge.look_over.release()
    forge.pause_over.release(10)
