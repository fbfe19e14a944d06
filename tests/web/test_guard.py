"""`sm serve` and those it should not trust: web pages, strangers, clients that never end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.store import lock
from sm.store.files import write_json
from sm.store.paths import Root
from tests.company import Company
from tests.conftest import sealed_environment
from tests.helpers import HANG_S, wait_for
from tests.serving import STARTED, Served, heard, serving

TOKEN = "0123456789abcdef-a-secret"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all: whatever was sent to it, it has to answer the next."""
    folder = tmp_path_factory.mktemp("served")
    state = folder / "state"
    state.mkdir(mode=0o700)
    base = sealed_environment(folder)
    with serving(folder, env={"SM_STATE_ROOT": str(state)}, base=base) as found:
        yield found


def post(path: str, *headers: str) -> bytes:
    """The head of a request with a body."""
    lines = (f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers)
    return "\r\n".join([*lines, "", ""]).encode()


# Web pages


@pytest.mark.parametrize(
    "name",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[", "", "10.0.0.7"],
)
def test_a_name_that_leads_here_from_elsewhere_is_refused(served: Served, name: str) -> None:
    for host in (name, f"{name}:{served.port}"):
        assert served.get("/sessions", host=host).status == 403


def test_our_own_names_are_let_in(served: Served) -> None:
    for host in ("localhost", "LOCALHOST", "localhost.", "127.0.0.1", "[::1]", "127.0.0.2"):
        assert served.get("/health", host=f"{host}:{served.port}").status == 200


def test_a_page_of_another_origin_is_refused(served: Served) -> None:
    for origin in ("http://evil.example", "null", "file://", "http://localhost.evil.example", "["):
        assert served.post("/hooks/claude", {}, origin=origin).status == 403, origin
    for origin in ("http://localhost:3000", "http://127.0.0.1", "http://[::1]:80"):
        assert served.post("/hooks/claude", {}, origin=origin).status == 200, origin


def test_a_page_may_not_even_ask_whether_it_may(served: Served) -> None:
    said = served.ask("OPTIONS", "/sessions", headers={"origin": "http://localhost:3000"})
    assert said.status == 405
    assert not [name for name in said.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_form_can_send_is_refused(served: Served, kind: str) -> None:
    said = served.ask("POST", "/hooks/claude", b"{}", {"content-type": kind})
    assert said.status == 415


def test_json_may_name_its_character_set(served: Served) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        assert served.ask("POST", "/hooks/claude", b"{}", {"content-type": kind}).status == 200


# Token


def test_with_a_token_every_request_needs_it(root: Root, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    with serving(tmp_path, "--token-file", str(file), program=STARTED) as served:
        for path in ("/health", "/sessions", "/openapi.json", "/nothing"):
            said = served.get(path)
            assert (said.status, said.headers["www-authenticate"]) == (401, "Bearer")
        for wrong in (TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer", "Bearer \u00e9"):
            assert served.get("/health", authorization=wrong).status == 401
        assert served.get("/health", **BEARER).status == 200
        assert served.post("/hooks/claude", {}, **BEARER).status == 200
        described = served.get("/openapi.json", **BEARER).body
        assert described["security"] == [{"token": []}]
        command = Path(f"/proc/{served.process.pid}/cmdline").read_bytes()
        assert TOKEN.encode() not in command


def test_the_token_may_come_by_the_environment(root: Root, tmp_path: Path) -> None:
    with serving(tmp_path, env={"SM_SERVE_TOKEN": TOKEN}) as served:
        assert served.get("/health").status == 401
        assert served.get("/health", **BEARER).status == 200


def test_other_machines_need_a_token(company: Company) -> None:
    for host in ("0.0.0.0", "::"):
        done = company.sm("serve", "--host", host, "--port", "0", code=2)
        assert done.stderr == (
            f"sm: '{host}' can be reached from elsewhere: set a token with --token-file, "
            "or listen on 127.0.0.1\n"
        )
    with serving(company.folder, "--host", "0.0.0.0", env={"SM_SERVE_TOKEN": TOKEN}) as served:
        assert served.get("/health").status == 401
        assert served.get("/health", **BEARER).status == 200
        assert served.get("/health", host=socket.gethostname(), **BEARER).status == 200
        assert served.get("/health", host="evil.example").status == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_token_is_good_under_any_name_and_from_any_dashboard(
    root: Root, tmp_path: Path, address: str
) -> None:
    """A container calls this machine host.docker.internal, a proxy has a name of its own."""
    with serving(tmp_path, "--host", address, env={"SM_SERVE_TOKEN": TOKEN}) as served:
        for name in ("host.docker.internal", "vm.lan:8420", f"localhost:{served.port}"):
            assert served.get("/sessions", host=name, **BEARER).status == 200
        for origin in ("https://dash.example", "null"):
            assert served.post("/hooks/claude", {}, origin=origin, **BEARER).status == 200
            wrong = served.post("/hooks/claude", {}, origin=origin, authorization="Bearer x")
            assert wrong.status == 403


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_token_file_of_somebody_else_is_refused(company: Company) -> None:
    """Who owns it knows the token, and may change it."""
    file = company.folder / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    os.chown(file, 65534, 65534)
    done = company.sm("serve", "--port", "0", "--token-file", str(file), code=2)
    assert "is not owned by you" in done.stderr


@pytest.mark.parametrize(
    ("content", "mode", "error"),
    [
        (f"{TOKEN}\n", 0o644, "can be read by others: run chmod 600 on it"),
        ("short\n", 0o600, "has no usable token"),
        ("\n", 0o600, "has no usable token"),
        (f"{TOKEN} {TOKEN}\n", 0o600, "has no usable token"),
    ],
)
def test_a_token_that_protects_nothing_is_refused(
    company: Company, content: str, mode: int, error: str
) -> None:
    file = company.folder / "token"
    file.write_text(content)
    file.chmod(mode)
    done = company.sm("serve", "--port", "0", "--token-file", str(file), code=2)
    assert error in done.stderr


def test_a_token_file_that_is_none_is_refused(company: Company) -> None:
    os.mkfifo(company.folder / "fifo", 0o600)
    for name, error in (("none", "no such file"), ("fifo", "is no file"), (".", "is a directory")):
        file = str(company.folder / name)
        done = company.sm("serve", "--port", "0", "--token-file", file, code=2)
        assert error in done.stderr


@pytest.mark.parametrize("host", ["nowhere.invalid", "300.1.1.1", ""])
def test_an_address_that_is_none_is_refused(company: Company, host: str) -> None:
    done = company.sm("serve", "--host", host, "--port", "0", code=2)
    assert done.stderr.startswith("sm: ")


# Bodies


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"session_id": "\xff"}', 400),
        (b'{"session_id": "\\ud800"}', 400),
        (b'{"session_id": NaN}', 400),
        (b'{"other": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", 400),
        (b"[" * 30_000, 400),
        (b"null", 422),
        (b'"text"', 422),
        (b'{"session_id": 7}', 422),
        (b'{"session_id": {"a": 1}}', 422),
        (b'{"used_percentage": 1e400}', 422),
        (b'{"total_input_tokens": -5}', 422),
        (b'{"session_id": "\\u0000"}', 200),
        (b'{"unknown": [1, {"deep": true}]}', 200),
        (b'{"session_id": "x", "session_id": "y"}', 200),
    ],
)
def test_bodies_that_are_none(served: Served, body: bytes, status: int) -> None:
    said = served.ask("POST", "/hooks/context-usage", body)
    assert said.status == status
    assert set(said.body) == {"error" if status != 200 else "status"}


def test_a_body_that_is_too_large_is_not_taken(served: Served) -> None:
    said = served.ask("POST", "/hooks/context-usage", b" " * (2 * 1024 * 1024))
    assert said.status == 413
    assert said.body == {"error": "the body is above 65,536 bytes"}
    assert served.get("/health").status == 200


def test_a_body_without_end_is_cut_off(served: Served) -> None:
    """Above what is read for the sake of good clients, the connection is closed."""
    with served.open() as connection:
        connection.sendall(post("/hooks/context-usage", "Transfer-Encoding: chunked"))
        piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        pieces = iter(range(1024))
        with contextlib.suppress(OSError):  # reset, or a broken pipe
            for _ in pieces:
                connection.sendall(piece)
        assert next(pieces, None), "all of 64 MB was taken"
    assert served.get("/health").status == 200


def test_who_asks_before_sending_is_told_at_once(served: Served) -> None:
    with served.open() as connection:
        head = post("/hooks/claude", "Content-Length: 9000000", "Expect: 100-continue")
        connection.sendall(head)
        said = heard(connection)
        assert (said.status, said.headers["connection"]) == (413, "close")


def test_a_refusal_reads_the_body_so_that_the_connection_goes_on(served: Served) -> None:
    client = http.client.HTTPConnection("127.0.0.1", served.port, timeout=HANG_S)
    for _ in range(3):
        client.request("POST", "/nothing", b"x" * 100_000)
        response = client.getresponse()
        assert (response.status, response.getheader("connection")) == (404, None)
        response.read()
    client.close()


# Slow, many, odd


def test_who_never_ends_a_body_is_given_up(served: Served) -> None:
    with served.open() as body, served.open() as cut:
        body.sendall(post("/hooks/claude", "Content-Length: 100") + b"{")
        cut.sendall(post("/hooks/claude", "Transfer-Encoding: chunked"))
        began = time.monotonic()
        while not select.select([cut], [], [], 0.1)[0]:  # a byte in the longest head of a piece
            cut.sendall(b"1;" + b"x" * 16_000 + b"\r\n{\r\n")
            assert time.monotonic() - began < HANG_S
        assert heard(body).status == heard(cut).status == 408
        assert 5 < time.monotonic() - began < HANG_S


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/9\r\nHost: localhost\r\n\r\n",
        b"nonsense\r\n\r\n",
        post("/hooks/claude", "Content-Length: -5"),
        post("/hooks/claude", "Content-Length: 5", "Content-Length: 7"),
        post("/hooks/claude", "Transfer-Encoding: chunked") + b"zz\r\n",
    ],
)
def test_what_is_no_http_is_refused(served: Served, sent: bytes) -> None:
    with served.open() as connection:
        connection.sendall(sent)
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == 400
    assert served.get("/health").status == 200


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/health", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 403),
        ("/nothing", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 403),
        ("/page/nothing", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 403),
        ("/page/terminal/dev-harb-9", "", 400),
        ("/page/terminal/dev-harb-9", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 403),
    ],
)
def test_a_websocket_is_not_opened(served: Served, path: str, more: str, status: int) -> None:
    with served.open() as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
            f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n{more}\r\n".encode()
        )
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == status
    assert served.get("/health").status == 200


def test_other_methods_and_places_are_told_apart(served: Served) -> None:
    assert served.ask("DELETE", "/sessions").status == 405
    assert served.get("/hooks/claude").status == 405
    for path in ("/nothing", "/sessions/", "/sessions/a/b", "/sessions/../health", "//health"):
        assert served.get(path).status == 404, path


def send_at_once(served: Served, session: str, count: int) -> list[socket.socket]:
    """Ask to send so many messages to a session; returns the connections that wait."""
    body = json.dumps({"text": "Hello."}).encode()
    request = post(f"/sessions/{session}/input", f"Content-Length: {len(body)}") + body
    waiting = [served.open() for _ in range(count)]
    for connection in waiting:
        connection.sendall(request)
    return waiting


def has_answer(connections: list[socket.socket]) -> bool:
    """Whether there is an answer on one of them."""
    return bool(select.select(connections, [], [], 0)[0])


def test_a_slow_terminal_holds_up_nobody_else(company: Company) -> None:
    """As many messages as may wait at a time, for an agent whose lock somebody holds."""
    ann = company.new("ann", provider="mute")
    env = {"SM_CONFIG": str(company.config)}
    with serving(company.folder, env=env) as served:
        with lock.hold(company.session(ann).dir.delivery_lock):
            waiting = send_at_once(served, ann, 20)
            wait_for(lambda: served.get("/sessions").body["sessions"][0]["waiting"] > 0, "them")
            assert served.get("/health").status == 200
            assert served.get(f"/sessions/{ann}").status == 200
            assert not has_answer(waiting)
        for connection in waiting:
            assert heard(connection).status == 200
            connection.close()


def test_a_stuck_session_holds_up_no_message_to_another(company: Company) -> None:
    """Nor does it when those who asked have gone: their threads still run."""
    ann, bob = (company.new(name, provider="mute") for name in ("ann", "bob"))
    env = {"SM_CONFIG": str(company.config)}
    with serving(company.folder, env=env) as served:
        with lock.hold(company.session(ann).dir.delivery_lock):
            waiting = send_at_once(served, ann, 40)
            wait_for(lambda: served.get(f"/sessions/{ann}").body["waiting"] > 3, "them")
            assert served.post(f"/sessions/{bob}/input", {"text": "Quick."}).status == 200
            assert served.post(f"/sessions/{bob}/kill", {}).status == 200
            assert not has_answer(waiting)
        for connection in waiting:
            assert heard(connection).status == 200
            connection.close()


def test_an_error_of_ours_shows_no_traceback(company: Company) -> None:
    """What was never expected is told where the server runs, not to who asks."""
    ann = company.session(company.new("ann", provider="mute"))
    identity = json.loads(ann.dir.identity.read_text())
    with serving(company.folder, clean=False) as served:
        write_json(ann.dir.identity, identity | {"created_at": 1e300})
        said = served.get(f"/sessions/{ann.name}")
        assert (said.status, set(said.body)) == (500, {"error"})
        assert said.body["error"].startswith("unexpected error: what 'sm serve' printed")
        (row,) = served.get("/sessions").body["sessions"]
        assert (row["id"], row["status"]) == (ann.name, "damaged")
        write_json(ann.dir.identity, identity)
        assert served.get(f"/sessions/{ann.name}").status == 200
        assert "OverflowError" in served.stop()[1]


def test_a_state_root_that_is_none_is_told(root: Root, tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        root.private.mkdir(mode=0o700)
        root.sessions.write_text("no directory")
        said = served.get("/sessions")
        assert (said.status, set(said.body)) == (500, {"error"})
        root.sessions.unlink()
        assert served.get("/sessions").status == 200
