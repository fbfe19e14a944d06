"""Whether an agent could work on a machine: its model's API, by a proxy or not, and its login."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.plugins.hosts.node.model import APIS, find_api, try_api, try_login
from tests.forges.server import make_certificate, speak_tls

REFUSED, TUNNELLED = b"HTTP/1.1 403 Forbidden\r\n\r\n", b"HTTP/1.1 200 Connected\r\n\r\n"


@contextlib.contextmanager
def listening(serve: object) -> Iterator[int]:
    """A server on loopback that has `serve` done with each connection; yields its port."""
    assert callable(serve)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        serve(connection)

        thread = threading.Thread(target=take)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate that nobody trusts, with its key beside it."""
    return make_certificate(tmp_path)


@pytest.fixture
def api(certificate: Path) -> Iterator[str]:
    """An API on loopback that speaks TLS, and is never asked anything."""
    context = speak_tls(certificate)

    def shake_hands(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            assert secured.recv(1) == b"", "nothing is requested"

    with listening(shake_hands) as port:
        yield f"https://localhost:{port}"


def test_the_api_is_where_the_agents_environment_or_its_own_settings_say(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert find_api("claude", env) == APIS["claude"]
    assert find_api("codex", env) == APIS["codex"]
    assert find_api("codex", env | {"OPENAI_BASE_URL": "https://there/v1"}) == "https://there/v1"
    assert find_api("generic", env) == ""
    (tmp_path / ".claude").mkdir()
    settings = tmp_path / ".claude" / "settings.json"
    settings.write_text('{"env": {"ANTHROPIC_BASE_URL": "https://gateway:8443", "N": 7}}')
    assert find_api("claude", env) == "https://gateway:8443"
    assert find_api("claude", env | {"ANTHROPIC_BASE_URL": "http://here"}) == "http://here"
    settings.write_text('{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}')
    assert find_api("claude", env) == "", "its address depends on much else"
    settings.write_text("{")
    assert find_api("claude", env) == APIS["claude"]


def test_what_is_in_the_way_of_the_api_is_named_with_what_to_do(
    api: str, certificate: Path
) -> None:
    untrusted = try_api(api, {})
    assert untrusted
    assert "certificate is not trusted: self" in untrusted.what
    assert "NODE_EXTRA_CA_CERTS" in untrusted.advice
    assert not untrusted.is_certain
    assert try_api(api, {"NODE_EXTRA_CA_CERTS": str(certificate)}) is None
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = try_api(f"http://127.0.0.1:{unused.getsockname()[1]}", {})
    assert closed
    assert "Connection refused" in closed.what
    assert "HTTPS_PROXY" in closed.advice
    unknown = try_api("https://nowhere.invalid", {})
    assert unknown
    assert "no address is known for 'nowhere.invalid'" in unknown.what
    wrong = try_api("ftp://there", {})
    assert wrong
    assert "is no address of an API" in wrong.what


def test_a_proxy_is_used_unless_the_api_is_exempt(api: str, certificate: Path) -> None:
    trusting = {"NODE_EXTRA_CA_CERTS": str(certificate)}

    def refuse(connection: socket.socket) -> None:
        asked = connection.recv(4096)
        assert asked.startswith(b"CONNECT localhost:")
        connection.sendall(REFUSED)

    with listening(refuse) as port:
        by_proxy = trusting | {"HTTPS_PROXY": f"http://127.0.0.1:{port}"}
        refused = try_api(api, by_proxy)
        assert refused
        assert f"by the proxy 127.0.0.1:{port}" in refused.what
        assert "403" in refused.what
        assert "correct the proxy" in refused.advice
        assert try_api(api, by_proxy | {"NO_PROXY": "localhost"}) is None

    def let_through(connection: socket.socket) -> None:
        there = connection.recv(4096).split()[1].decode()
        host, _, port = there.partition(":")
        with socket.create_connection((host, int(port))) as onward:
            connection.sendall(TUNNELLED)
            other = {connection: onward, onward: connection}
            while part := (ready := select.select([*other], [], [])[0][0]).recv(4096):
                other[ready].sendall(part)

    with listening(let_through) as port:
        assert try_api(api, trusting | {"https_proxy": f"127.0.0.1:{port}"}) is None
        assert try_api(api, {"https_proxy": f"127.0.0.1:{port}"}), "the certificate is checked"


def make_client(folder: Path, body: str) -> str:
    path = folder / "client"
    path.write_text(f'#!/bin/sh\n[ "$*" = "auth status" ] || exit 9\n{body}\n')
    path.chmod(0o755)
    return str(path)


def test_a_client_without_a_login_is_told_of(tmp_path: Path) -> None:
    without = make_client(tmp_path, "echo '{\"loggedIn\": false}'; exit 1")
    found = try_login("claude", without, {})
    assert found
    assert "is not logged in there" in found.what
    assert "claude auth login" in found.advice
    assert try_login("claude", make_client(tmp_path, "echo '{\"loggedIn\": true}'"), {}) is None
    older = make_client(tmp_path, "echo \"error: unknown command 'auth'\" >&2; exit 1")
    assert try_login("claude", older, {}) is None, "it does not know"
    assert try_login("claude", "/nowhere/claude", {}) is None
    assert try_login("generic", without, {}) is None
