"""What stands before a body, byte by byte, to `sm serve` and `sm mcp --http`."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sm.store.paths import Root
from tests.conftest import sealed_environment
from tests.helpers import wait_for
from tests.serving import Said, Served, heard, serving

KIB = 1024
HOST = b"Host: localhost"
JSON = b"Content-Type: application/json"
SLOW = "from sm.web import server; server.UNREAD_S = 3"
"""So long a client may read nothing, for a test that does not have 90 s."""


class Door(NamedTuple):
    """A server, a path of it, and the status of a GET there that is let in."""

    served: Served
    path: bytes
    let_in: int

    def get(self, *headers: bytes, target: bytes = b"", version: bytes = b"HTTP/1.1") -> Said:
        """The answer to a request with these lines and no others."""
        line = b" ".join((b"GET", target or self.path, version))
        return self.hear(b"\r\n".join((line, *headers, b"", b"")))

    def hear(self, sent: bytes) -> Said:
        with self.served.open() as connection:
            connection.sendall(sent)
            return heard(connection)

    def status(self, sent: bytes) -> int:
        """The status alone: what is no HTTP is answered as plain text."""
        with self.served.open() as connection:
            connection.sendall(sent)
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status

    def is_open(self) -> bool:
        return (
            self.status(b"GET " + self.path + b" HTTP/1.1\r\n" + HOST + b"\r\n\r\n") == self.let_in
        )

    def works(self) -> bool:
        return self.get(HOST).status == self.let_in


@pytest.fixture(
    scope="module",
    params=[(("serve",), b"/health", 200), (("mcp", "--http"), b"/mcp", 405)],
    ids=["serve", "mcp"],
)
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    """One of each for all tests: whatever was sent to it, it has to answer the next."""
    folder = tmp_path_factory.mktemp("served")
    state = folder / "state"
    state.mkdir(mode=0o700)
    verb, path, let_in = request.param
    base = sealed_environment(folder)
    with serving(folder, verb=verb, env={"SM_STATE_ROOT": str(state)}, base=base) as served:
        yield Door(served, path, let_in)


# How large


PADDINGS = pytest.mark.parametrize(
    "padding",
    [
        lambda size: ((b"X: " + b"x" * size,), b""),
        lambda size: ((b"A: b",) * (size // 6), b""),
        lambda size: ((), b"?" + b"x" * size),
    ],
    ids=["a value", "many", "the target"],
)


@pytest.mark.parametrize("size", [17, 60])
@PADDINGS
def test_a_head_above_the_limit_is_refused_though_it_comes_at_once(
    door: Door, size: int, padding: Callable[[int], tuple[tuple[bytes, ...], bytes]]
) -> None:
    headers, query = padding(size * KIB)
    said = door.get(HOST, *headers, target=door.path + query)
    assert (said.status, said.body) == (431, {"error": "the head is above 16,384 bytes"})
    assert door.works()


@PADDINGS
def test_a_head_far_above_the_limit_is_not_collected(
    door: Door, padding: Callable[[int], tuple[tuple[bytes, ...], bytes]]
) -> None:
    """It comes in more than one read, and the parser keeps no more than four times the limit."""
    headers, query = padding(600 * KIB)
    line = b"GET " + door.path + query + b" HTTP/1.1"
    with door.served.open() as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"\r\n".join((line, HOST, *headers, b"", b"")))
        assert b" 400 " in connection.recv(100)
    assert door.works()


def test_a_head_of_just_the_limit_is_taken(door: Door) -> None:
    def head(size: int) -> bytes:
        bare = b"GET " + door.path + b" HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n"
        return bare.replace(b"X: ", b"X: " + b"x" * (size - len(bare)))

    assert door.hear(head(16 * KIB)).status == door.let_in
    assert door.hear(head(16 * KIB + 1)).status == 431


def test_a_large_head_behind_another_request_is_refused(door: Door) -> None:
    line = b"GET " + door.path + b" HTTP/1.1\r\nHost: localhost\r\n"
    with door.served.open() as connection:
        connection.sendall(line + b"\r\n" + line + b"X: " + b"x" * 60 * KIB + b"\r\n\r\n")
        answers = all_of(connection)
    assert answers.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 431 " in answers


def all_of(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(0x10000), b""))


# What for


@pytest.mark.parametrize(
    "target",
    [
        b"http://localhost/health",
        b"http://evil.example/health",
        b"localhost:80",
        b"evil.example:80",
        b"*",
        b"health",
        b"\\health",
    ],
)
def test_what_is_asked_of_a_proxy_is_refused(door: Door, target: bytes) -> None:
    """By the RFC such a target's name counts and not that in 'Host', which was looked at."""
    said = door.get(HOST, target=target)
    assert said.status == 400
    assert said.body["error"].startswith("this is no proxy")


def test_other_versions_are_refused(door: Door) -> None:
    for version in (b"HTTP/2.0", b"HTTP/9.9", b"HTTP/0.9"):
        assert door.get(HOST, version=version).status == 505
    assert door.hear(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status == 505
    assert door.get(HOST, version=b"HTTP/1.0").status == door.let_in
    assert door.get(version=b"HTTP/1.0").status == 403


# By which name


@pytest.mark.parametrize(
    "name",
    [
        b"evil.example@127.0.0.1",
        b"evil.example:80@localhost",
        b"@localhost",
        b"localhost@evil.example",
        b"localhost/evil.example",
        b"localhost?evil.example",
        b"localhost#evil.example",
        b"localhost\\evil.example",
        b"localhost:80:80",
        b"localhost:0x50",
        b"localhost:800000",
        b"localhost:-1",
        b"localhost:\xef\xbc\x98",
        b"localhost,evil.example",
        b"evil.example, localhost",
        b"localhost evil.example",
        b"localhost\tevil.example",
        b"loc%61lhost",
        b"l\xf6calhost",
        b".localhost",
        b"localhost..",
        b"127.1",
        b"127.0.0.001",
        b"0x7f.0.0.1",
        b"2130706433",
        b"0.0.0.0",
        b"::1",
        b"[::1",
        b"::1]",
        b"[::1]evil.example",
        b"[::1]evil.example:80",
        b"evil.example[::1]",
        b"[::1%25lo]",
        b"[::1%lo]",
        b"[::]",
        b"[127.0.0.1]",
        b"[localhost]",
        b"[v1.localhost]",
        b"[::ffff:10.0.0.7]",
    ],
)
def test_a_name_with_anything_about_it_is_none_of_ours(door: Door, name: bytes) -> None:
    assert door.get(b"Host: " + name).status == 403


def test_our_names_may_have_a_port_or_a_final_dot(door: Door) -> None:
    for name in (b"localhost:", b"localhost.:80", b"127.0.0.1.", b"[::1]:65535", b"[0:0::1]"):
        assert door.get(b"Host: " + name).status == door.let_in, name
    assert door.get(b"Host: [::ffff:127.0.0.1]").status == door.let_in


@pytest.mark.parametrize(
    "origin",
    [
        b"http://evil.example@localhost",
        b"http://localhost@evil.example",
        b"http://localhost/evil.example",
        b"http://localhost:80:80",
        b"evil://localhost",
        b"file://localhost",
        b"//localhost",
        b"localhost",
        b"http://",
        b"http://localhost http://evil.example",
        b"http://localhost, http://evil.example",
        b"",
    ],
)
def test_an_origin_with_anything_about_it_is_none_of_ours(door: Door, origin: bytes) -> None:
    assert door.get(HOST, b"Origin: " + origin).status == 403


# What can be read in two ways


@pytest.mark.parametrize(
    "headers",
    [
        (b"Host: localhost",),
        (b"Host: evil.example",),
        (b"Origin: http://localhost", b"Origin: http://evil.example"),
        (b"Authorization: Bearer a", b"Authorization: Bearer b"),
        (JSON, b"Content-Type: text/plain", b"Content-Length: 2"),
        (JSON, b"Content-Length: 2", b"Content-Length: 3"),
        (JSON, b"Content-Length: 2, 3"),
        (JSON, b"Content-Length: +2"),
        (JSON, b"Content-Length: " + b"9" * 5000),
        (JSON, b"Content-Length: 2", b"Transfer-Encoding: chunked"),
        (JSON, b"Transfer-Encoding: chunked", b"Content-Length: 2"),
        (b"Origin : http://localhost",),
        (b"\x0bOrigin: http://localhost",),
        (b"Origin: http://localhost\0",),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(door: Door, headers: tuple[bytes, ...]) -> None:
    line = b"GET " + door.path + b" HTTP/1.1"
    assert door.status(b"\r\n".join((line, HOST, *headers, b"", b""))) == 400
    assert door.works()


@pytest.mark.parametrize(
    "coding", [b"gzip, chunked", b"identity", b"chunked, chunked", b"xchunked"]
)
def test_a_coding_that_is_not_spoken_here_is_refused(door: Door, coding: bytes) -> None:
    line = b"GET " + door.path + b" HTTP/1.1"
    coded = b"Transfer-Encoding: " + coding
    assert door.status(b"\r\n".join((line, HOST, JSON, coded, b"", b""))) == 400


def test_a_request_in_the_body_of_another_is_none(door: Door) -> None:
    """The body is read to its end, so what it holds is never taken for the next request."""
    inner = b"GET /inner HTTP/1.1\r\nHost: localhost\r\n\r\n"
    line = b"GET " + door.path + b" HTTP/1.1\r\nHost: localhost\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(inner)
    with door.served.open() as connection:
        connection.sendall(line + length + inner + line + b"Connection: close\r\n\r\n")
        answers = all_of(connection)
    assert answers.count(b"HTTP/1.1 ") == answers.count(b"HTTP/1.1 %d " % door.let_in) == 2


def test_requests_that_are_sent_without_waiting_are_answered_in_order(door: Door) -> None:
    line = b"GET " + door.path + b" HTTP/1.1\r\nHost: localhost\r\n"
    with door.served.open() as connection:
        connection.sendall((line + b"\r\n") * 500 + line + b"Connection: close\r\n\r\n")
        assert all_of(connection).count(b"HTTP/1.1 %d " % door.let_in) == 501


# How the body is cut


@pytest.mark.parametrize("piece", [b"F" * 40 + b"\r\n", b"-2\r\n", b"\r\n"])
def test_the_head_of_a_piece_that_is_none_is_refused(door: Door, piece: bytes) -> None:
    head = b"POST " + door.path + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    assert door.status(head + JSON + b"\r\n\r\n" + piece) == 400
    assert door.works()


def test_the_head_of_a_piece_is_not_collected_without_end(door: Door) -> None:
    head = b"POST " + door.path + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    with door.served.open() as connection, contextlib.suppress(ConnectionError):
        connection.sendall(head + JSON + b"\r\n\r\n2;" + b"x" * 600 * KIB)
        assert b" 400 " in connection.recv(100)
    assert door.works()


def test_what_follows_a_body_adds_no_header(door: Door) -> None:
    head = (
        b"GET " + door.path + b" HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n"
    )
    assert door.hear(head + b"\r\n0\r\nHost: localhost\r\n\r\n").status == 403


# How many, and how slow


def test_requests_above_the_limit_of_connections_are_refused(door: Door) -> None:
    half = b"GET " + door.path + b" HTTP/1.1\r\n"
    with contextlib.ExitStack() as opened:
        taken = [opened.enter_context(door.served.open()) for _ in range(200)]
        for connection in taken:
            connection.sendall(half)
        wait_for(lambda: door.status(half + HOST + b"\r\n\r\n") == 503, "all places to be taken")
        taken[0].close()
        wait_for(door.is_open, "a place to be free")
        taken[1].sendall(HOST + b"\r\n\r\n")
        assert heard(taken[1]).status == door.let_in


def test_who_does_not_read_the_answer_is_given_up(root: Root, tmp_path: Path) -> None:
    """Larger than what fits between the two, so that the server keeps the rest of it."""
    program = ("-Ic", f"{SLOW}; from sm.__main__ import main; main()")
    with (
        serving(tmp_path, verb=("mcp", "--http"), program=program) as served,
        socket.socket() as connection,
    ):
        thread = call(served, "create_handoff", title="Large", content="x")["handoff"]["id"]
        for _ in range(8):
            call(served, "add_to_handoff", id=thread, type="context", content="x" * 1_000_000)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", served.port))
        connection.sendall(calling("get_handoff", id=thread))
        assert connection.recv(12) == b"HTTP/1.1 200"
        assert is_connected(served.port)
        wait_for(lambda: not is_connected(served.port), "the connection to be given up")


def calling(tool: str, **arguments: str) -> bytes:
    """The request that calls a tool of the bridge."""
    params = {"name": tool, "arguments": arguments | {"as_client": "chat"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(asked).encode()
    lines = (HOST, JSON, b"Accept: application/json", b"Content-Length: %d" % len(body), b"", body)
    return b"\r\n".join((b"POST /mcp HTTP/1.1", *lines))


def call(served: Served, tool: str, **arguments: str) -> dict[str, Any]:
    with served.open() as connection:
        connection.sendall(calling(tool, **arguments))
        answer = heard(connection).body["result"]["structuredContent"]
    assert isinstance(answer, dict)
    return answer


def is_connected(port: int) -> bool:
    """Whether anybody is connected with the server at this port of 127.0.0.1: see proc(5)."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(int(row[1].partition(":")[2], 16) == port and row[3] == "01" for row in rows)
