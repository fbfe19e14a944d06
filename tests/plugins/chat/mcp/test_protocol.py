"""What a client may expect of any MCP server: old revisions, bad lines, signals, its own end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from sm.store.paths import Root
from sm.store.sqlite import BUSY_S
from tests.helpers import HANG_S
from tests.serving import serving

pytestmark = pytest.mark.long_lived

HTTP = ("mcp", "--http")
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
"""Those that begin with a handshake."""
ACCEPT = "application/json, text/event-stream"
CREATE = {"name": "create_handoff", "arguments": {"title": "t", "content": "c"}}


def request(ident: object, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def handshake(revision: str) -> dict[str, object]:
    who = {"name": "test", "version": "1"}
    return request(0, "initialize", protocolVersion=revision, capabilities={}, clientInfo=who)


@dataclass
class Wire:
    """A server on stdio whose client writes and reads lines."""

    process: subprocess.Popen[bytes]

    def send(self, *lines: dict[str, object] | bytes) -> None:
        assert self.process.stdin
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def begin(self) -> None:
        self.send(handshake(REVISIONS[-1]))
        assert self.receive()["id"] == 0
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self) -> tuple[list[Any], int, bytes]:
        """The answers that have not been read, the exit code, and stderr."""
        stdout, stderr = self.process.communicate(timeout=HANG_S)
        answers = [json.loads(line) for line in stdout.splitlines()]
        return answers, self.process.returncode, stderr


@pytest.fixture
def wire(root: Root) -> Iterator[Wire]:
    argv = [sys.executable, "-Im", "sm", "mcp"]
    with subprocess.Popen(argv, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        yield Wire(process)
        process.kill()


@contextlib.contextmanager
def database_in_use(home: Path) -> Iterator[None]:
    """Nobody else can write to the database meanwhile."""
    path = home / ".local" / "share" / "sm" / "core.db"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("BEGIN IMMEDIATE")
        yield


UNREADABLE = [
    # Half a character, as a client sends it that has cut a text in two.
    (
        b'{"jsonrpc": "2.0", "id": "cut", "method": "ping", "params": {"a": "\\ud83d"}}',
        "cut",
        -32700,
    ),
    (b'{"jsonrpc": "1.0", "id": 4, "method": "ping"}', 4, -32600),
    (b'{"jsonrpc": "2.0", "id": 5, "result": 7}', None, -32600),  # its id is one of ours
    (b'{"jsonrpc": "2.0", "id": "\\ud83d", "method": "ping"}', None, -32700),
    (b'[{"jsonrpc": "2.0", "id": 6, "method": "ping"}]', None, -32600),
    (b"no json", None, -32700),
    (b"[" * 100_000, None, -32700),
]


def test_who_waits_for_an_answer_to_what_cannot_be_read_gets_one(wire: Wire) -> None:
    wire.begin()
    wire.send(b"", b" ")
    for line, ident, code in UNREADABLE:
        wire.send(line)
        answer = wire.receive()
        assert (answer["id"], answer["error"]["code"]) == (ident, code)
    wire.send(request(7, "ping"))
    assert wire.end() == ([{"jsonrpc": "2.0", "id": 7, "result": {}}], 0, b"")


def test_a_call_that_waits_holds_up_no_other_and_can_be_cancelled(wire: Wire, sealed: Path) -> None:
    wire.begin()
    wire.send(request(1, "tools/call", **CREATE))
    assert wire.receive()["id"] == 1
    with database_in_use(sealed):
        cancelled = {"requestId": 2}
        wire.send(request(2, "tools/call", **CREATE), request(3, "ping"))
        assert wire.receive()["id"] == 3
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        wire.send(request(4, "ping"))
        assert wire.receive()["id"] == 4
    wire.send(request(5, "tools/call", **CREATE))
    assert wire.receive()["id"] == 5
    assert wire.end() == ([], 0, b"")


def test_who_sends_all_at_once_and_nothing_more_is_answered(wire: Wire, sealed: Path) -> None:
    calls = [request(ident, "tools/call", **CREATE) for ident in range(1, 5)]
    wire.send(handshake(REVISIONS[-1]), *calls, request(5, "ping"))
    answers, code, stderr = wire.end()
    assert sorted(answer["id"] for answer in answers) == list(range(6))
    made = [answer for answer in answers if "structuredContent" in answer["result"]]
    assert (len(made), code, stderr) == (4, 0, b"")


def test_what_was_cancelled_is_not_waited_for_at_the_end(wire: Wire, sealed: Path) -> None:
    wire.begin()
    wire.send(request(1, "tools/call", **CREATE))
    assert wire.receive()["id"] == 1
    with database_in_use(sealed):
        wire.send(request(2, "tools/call", **CREATE), request(3, "ping"))
        assert wire.receive()["id"] == 3
        cancelled = {"requestId": 2}
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        wire.send(request(4, "ping"))
        assert wire.receive()["id"] == 4
        assert wire.process.stdin
        wire.process.stdin.close()
        wire.process.stdin = None
    assert wire.end() == ([], 0, b"")


def test_ctrl_c_ends_a_server_whose_client_says_nothing(wire: Wire) -> None:
    wire.begin()
    wire.process.send_signal(signal.SIGINT)
    assert wire.process.wait(timeout=HANG_S) == -signal.SIGINT


@pytest.mark.parametrize("count", [1, 20])
def test_a_client_that_ends_without_reading_its_answers_is_no_crash(root: Root, count: int) -> None:
    read, write = os.pipe()
    argv = [sys.executable, "-Im", "sm", "mcp"]
    pings = [json.dumps(request(ident, "ping")).encode() for ident in range(count)]
    with subprocess.Popen(argv, stdin=PIPE, stdout=write, stderr=PIPE) as process:
        os.close(write)
        os.close(read)
        _, stderr = process.communicate(b"\n".join(pings), timeout=HANG_S)
    assert (process.returncode, stderr) == (0, b"")


def test_a_client_of_any_revision_is_served(root: Root, tmp_path: Path) -> None:
    with serving(tmp_path, verb=HTTP) as served:
        for asked in (*REVISIONS, "2099-01-01"):
            result = served.post("/mcp", handshake(asked), accept=ACCEPT).body["result"]
            revision = result["protocolVersion"]
            assert revision == (asked if asked in REVISIONS else REVISIONS[-1])
            call = request(1, "tools/call", **CREATE)
            said = served.post("/mcp", call, accept=ACCEPT, mcp_protocol_version=revision)
            assert said.body["result"]["structuredContent"]["entries"]


def test_over_http_there_is_nothing_to_listen_to(root: Root, tmp_path: Path) -> None:
    with serving(tmp_path, verb=HTTP) as served:
        for method in ("GET", "DELETE"):
            said = served.ask(method, "/mcp", headers={"accept": "text/event-stream"})
            assert (said.status, said.headers["allow"]) == (405, "POST")
            # Who may not ask is told only that.
            assert served.ask(method, "/mcp", headers={"host": "evil.example"}).status == 403


def test_over_http_a_server_that_is_stopped_waits_for_no_database(
    root: Root, tmp_path: Path, sealed: Path
) -> None:
    with serving(tmp_path, verb=HTTP) as served:
        call = json.dumps(request(1, "tools/call", **CREATE)).encode()
        head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: {ACCEPT}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(call)}\r\n\r\n"
        assert served.post("/mcp", request(0, "tools/call", **CREATE), accept=ACCEPT).status == 200
        with database_in_use(sealed), served.open() as connection:
            connection.sendall(head.encode() + call)
            # Answered later than the call is begun.
            assert served.post("/mcp", request(2, "ping"), accept=ACCEPT).status == 200
            start = time.monotonic()
            assert served.stop() == (0, "")
            assert time.monotonic() - start < BUSY_S / 2
