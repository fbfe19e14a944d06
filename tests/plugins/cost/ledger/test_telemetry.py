"""The receiver of what agents tell of their requests: whom it hears, and how long it is there."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sm.adapters.agent import own_settings
from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.codex import CODEX
from sm.plugins.cost.ledger import receiver, telemetry
from sm.plugins.cost.ledger.entries import CostLedger, open_ledger
from sm.plugins.cost.ledger.records.record import AgentKind, Tokens
from sm.plugins.cost.ledger.sums import SumGroup, add_up, read_sums
from sm.plugins.cost.ledger.telemetry import ENDPOINT, Address, ensure_receiver
from sm.sessions import registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.store import lock
from sm.store.files import ensure_private_dir, write_atomic
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.plugins.cost.ledger.test_reconciliation import account, answer, compaction, counts, start
from tests.plugins.cost.lines import OWNER, add_lines, enter, write_answer
from tests.plugins.cost.receivers import end_receivers, list_receivers

AT = "2026-11-28T12:02:00.000Z"


def make_record(request: str, source: str = "compact", **more: Any) -> dict[str, Any]:
    """What the client says of a request: counts are numbers, or words that are some."""
    told = {
        "event.timestamp": AT,
        "session.id": "s1",
        "model": "claude-opus-4-5",
        "input_tokens": 100,
        "output_tokens": "7",
        "cache_read_tokens": 900,
        "cache_creation_tokens": 50,
        "cache_creation_1h_tokens": 20,
        "request_id": request,
        "query_source": source,
    }
    attributes = [
        {
            "key": key,
            "value": {"stringValue": value} if isinstance(value, str) else {"intValue": value},
        }
        for key, value in (told | more).items()
    ]
    return {"body": {"stringValue": receiver.REQUEST}, "attributes": attributes}


def make_export(*records: dict[str, Any], session: str = "s-one") -> bytes:
    resource = {"attributes": [{"key": "sm.session", "value": {"stringValue": session}}]}
    logs = {"resource": resource, "scopeLogs": [{"logRecords": list(records)}]}
    return json.dumps({"resourceLogs": [logs]}).encode()


def test_requests_are_read_by_whom_they_are_for() -> None:
    other = {"body": {"stringValue": "claude_code.user_prompt"}, "attributes": []}
    records = [
        make_record("r1"),
        other,
        make_record("r2", "repl_main_thread", speed="fast"),
        make_record("r3", "agent:builtin:general-purpose", agent_id="a1"),
        make_record("r4", "generate_session_title"),
        make_record(""),
        make_record("r5", input_tokens=-1),
        make_record("r6", input_tokens="x"),
    ]
    [(session, entries)] = receiver.read(make_export(*records))
    assert session == "s-one"
    assert [(one.key, one.agent) for one in entries] == [
        ("r1", AgentKind.COMPACTION),
        ("r2", AgentKind.MAIN),
        ("r3", AgentKind.SUBAGENT),
        ("r4", AgentKind.TITLE),
    ]
    assert entries[0].tokens == Tokens(100, 7, 900, 30, 20)
    assert entries[1].model == "claude-opus-4-5 [fast]"
    for body in (b"", b"{", b"[]", b"[" * 100_000, b"\xff", b'{"resourceLogs": 1}'):
        with pytest.raises(ValueError, match="no OpenTelemetry logs"):
            list(receiver.read(body))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[CostLedger]:
    with open_ledger(tmp_path / "sm" / "ledger.db") as ledger:
        yield ledger


@pytest.mark.parametrize(
    ("source", "agent"),
    [
        ("web_search_tool", AgentKind.SEARCH),
        ("web_fetch_apply", AgentKind.FETCH),
        ("side_question", AgentKind.ASIDE),
        ("prompt_suggestion", AgentKind.OTHER),
    ],
)
def test_small_requests_of_the_clients_own_are_told_apart(source: str, agent: AgentKind) -> None:
    [(_, [entry])] = receiver.read(make_export(make_record("r1", source)))
    assert entry.agent is agent


@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_search_that_was_told_of_is_settled_and_its_fee_counts(
    ledger: CostLedger, tmp_path: Path, is_told_first: bool
) -> None:
    """Telemetry has its tokens, the record how often it was searched. Then the client is killed."""
    start(ledger, 0)
    call = answer("r1", 1)
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "WebSearch"}]
    found = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
    result = {"type": "user", "sessionId": "s1", "timestamp": AT, "message": {"content": [found]}}
    result |= {"toolUseResult": {"searchCount": 2}}
    [(_, told)] = receiver.read(make_export(make_record("q1", "web_search_tool")))
    path = tmp_path / "s1.jsonl"

    def hear() -> None:
        ledger.enter_told(OWNER, told)

    if is_told_first:
        hear()
    enter(ledger, add_lines(path, [call]))
    assert add_up(read_sums(ledger, SumGroup.ISSUE)).unknown == (not is_told_first)
    enter(ledger, add_lines(path, [result]))
    hear()
    ledger.connection.execute("DELETE FROM files")
    enter(ledger, path)
    sum_ = add_up(read_sums(ledger, SumGroup.ISSUE))
    assert (sum_.unknown, sum_.requests) == (0, 2)
    assert (sum_.tokens.input, sum_.tokens.searches) == (110, 2)


@pytest.mark.parametrize("is_told_first", [True, False])
def test_where_it_was_computed_is_told_by_the_record_alone(
    ledger: CostLedger, tmp_path: Path, is_told_first: bool
) -> None:
    """So it is known of a search by the requests beside it."""
    start(ledger, 0)
    call = answer("r1", 2, input_=100, output=7)
    call["message"]["usage"] |= {"inference_geo": "us"}
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "WebSearch"}]
    both = make_record("r1", "repl_main_thread"), make_record("q1", "web_search_tool")
    [(_, told)] = receiver.read(make_export(*both))
    if is_told_first:
        ledger.enter_told(OWNER, told)
    enter(ledger, add_lines(tmp_path / "s1.jsonl", [call]))
    ledger.enter_told(OWNER, told)
    assert {one.name for one in read_sums(ledger, SumGroup.MODEL)} == {"claude-opus-4-5 [us]"}
    assert add_up(read_sums(ledger, SumGroup.MODEL)).requests == 2


@pytest.mark.parametrize("is_told_first", [True, False])
@pytest.mark.parametrize("has_account", [True, False])
def test_a_compaction_that_was_told_of_is_not_counted_again(
    ledger: CostLedger, tmp_path: Path, is_told_first: bool, has_account: bool
) -> None:
    """Neither by its boundary, nor by the client's own account, in whichever order they come."""
    start(ledger, 0)
    [(_, told)] = receiver.read(
        make_export(make_record("r9"), make_record("r1", "repl_main_thread"))
    )
    lines = [write_answer("r1", at="2026-11-28T12:01:00Z"), compaction(2), answer("r2", 3)]
    counted = account(210, 47, 1830)
    counted["modelUsage"]["claude-opus-4-5"] |= {
        "cacheCreationInputTokens": 100,
        "cacheCreationEphemeral1hInputTokens": 40,
    }
    lines += [counted] * has_account
    if is_told_first:
        ledger.enter_told(OWNER, told)
    enter(ledger, add_lines(tmp_path / "s1.jsonl", lines))
    ledger.enter_told(OWNER, told)
    ledger.connection.execute("DELETE FROM files")
    enter(ledger, tmp_path / "s1.jsonl")
    assert counts(ledger) == (210, 47, 1830, 0)
    assert add_up(read_sums(ledger, SumGroup.AGENT)).requests == 3


@pytest.fixture
def address(root: Root, tmp_path: Path) -> Iterator[Address]:
    """A receiver that runs."""
    yield ensure_receiver(root, tmp_path / "sm" / "ledger.db")
    end_receivers(root)


def post(address: Address, body: bytes, path: str = "", **headers: str) -> int:
    connection = http.client.HTTPConnection(telemetry.LOOPBACK, address.port, timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", path or f"/{address.secret}/v1/logs", body, headers)
        return connection.getresponse().status


def test_it_hears_only_who_knows_the_secret_and_stays_whatever_it_hears(
    address: Address, root: Root, tmp_path: Path
) -> None:
    body = make_export(make_record("r1"))
    assert post(address, body, "/v1/logs") == 404
    assert post(address, body, f"/{'x' * len(address.secret)}/v1/logs") == 404
    assert post(address, b"{") == 400
    assert post(address, b"", **{"content-length": str(receiver.LARGEST + 1)}) == 413
    assert post(address, b"", **{"content-length": "-5"}) == 411
    idle = [socket.create_connection((telemetry.LOOPBACK, address.port)) for _ in range(40)]
    for one in idle:
        one.close()
    with socket.create_connection((telemetry.LOOPBACK, address.port)) as rude:
        rude.sendall(b"\x16\x03\x01" + b"x" * 70_000)
    wait_for(lambda: _is_heard(address, body), "the export to be heard", 30)
    with open_ledger(tmp_path / "sm" / "ledger.db") as ledger:
        assert counts(ledger) == (100, 7, 900, 0)
    for path in (root.plugins / "cost").iterdir():
        assert path.stat().st_mode & 0o077 == 0
    assert not (root.plugins / "cost" / "telemetry.log").read_text()


def test_who_does_not_show_the_secret_in_time_loses_the_place(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many single bytes it sends; one that has shown it may take its time."""
    monkeypatch.setattr(receiver, "PATIENCE_S", 0.3)
    listener = socket.create_server((telemetry.LOOPBACK, 0))
    place = listener.getsockname()
    address = Address(place[1], "secret")
    with receiver.TelemetryReceiver(root, tmp_path / "ledger.db", address, listener) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with (
            contextlib.closing(socket.create_connection(place, 20)) as known,
            contextlib.closing(socket.create_connection(place, 20)) as stranger,
        ):
            known.sendall(b"POST /secret/v1/logs HTTP/1.1\r\ncontent-length: 9000\r\n\r\n")
            sent = 0

            def is_cut() -> bool:
                nonlocal sent
                sent += known.send(b"x")
                try:
                    stranger.send(b"x")
                except OSError:
                    return True
                return False

            try:
                wait_for(is_cut, "the stranger to be cut off", 10)
                known.sendall(b"x" * (9000 - sent))
                assert known.recv(12) == b"HTTP/1.1 400"
            finally:
                server.shutdown()


def _is_heard(address: Address, body: bytes) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return post(address, body) == 200
    return False


def test_there_is_one_and_a_new_one_takes_the_place_of_one_that_was_killed(
    address: Address, root: Root, tmp_path: Path
) -> None:
    ledger = tmp_path / "sm" / "ledger.db"
    wait_for(lambda: _is_heard(address, make_export()), "it to listen")
    assert ensure_receiver(root, ledger) == address
    [first] = list_receivers(root)
    os.kill(first.pid, signal.SIGKILL)
    # Linux takes a process's command line away before its locks (kernel/exit.c: do_exit).
    held = root.plugins / "cost" / "telemetry.lock"
    wait_for(lambda: not lock.is_held(held), "its end")
    assert ensure_receiver(root, ledger) == address
    wait_for(lambda: _is_heard(address, make_export(make_record("r1"))), "it to listen")
    assert len(list_receivers(root)) == 1


def test_it_ends_when_no_agent_is_left_that_was_told_of_it(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "LOOK_S", 0.05)
    ensure_private_dir(root.plugins / "cost")
    listener = socket.create_server((telemetry.LOOPBACK, 0))
    address = Address(listener.getsockname()[1], "secret")
    write_atomic(
        root.plugins / "cost" / "telemetry.json", b'{"port":%d,"secret":"secret"}' % address.port
    )
    agent = subprocess.Popen(["sleep", "60"], env={ENDPOINT: address.url, "PATH": os.defpath})
    looked = []

    def look(of: Address) -> bool:
        looked.append(is_needed(of))
        if len(looked) == 5:
            agent.kill()
            agent.wait()
        return looked[-1]

    is_needed = receiver.is_needed
    monkeypatch.setattr(receiver, "is_needed", look)
    receiver.run(root, tmp_path / "ledger.db", listener)
    assert looked == [True] * 5 + [False] * receiver.GRACE


@pytest.fixture
def session(root: Root, tmp_path: Path) -> AdHocSession:
    config, work = tmp_path / "machine.yaml", tmp_path / "work"
    config.write_text('{"cost": {"telemetry": true}}')
    work.mkdir()
    record = AdHocRecord(
        name="s-one",
        provider=CLAUDE.name,
        cwd=work,
        config=config,
        state_root=root.path,
        created_at=1795860000.0,
        command="claude",
    )
    return registry.create(root, AdHocSession(record)).provide(profile=CLAUDE)


def test_nothing_is_put_in_the_place_of_what_a_person_has_set_up(
    session: AdHocSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "ensure_receiver", lambda *_: Address(7, "secret"))
    home, work = tmp_path / "home", session.record.cwd
    env = {"HOME": str(home)}

    def make(**more: str) -> str | None:
        return dict(telemetry.make_variables(session, CLAUDE, env | more)).get(ENDPOINT)

    assert make() == "http://127.0.0.1:7/secret/v1/logs"
    assert not telemetry.make_variables(session, CODEX, env)
    assert make(OTEL_EXPORTER_OTLP_ENDPOINT="http://collector:4318") is None
    assert make(OTEL_METRICS_EXPORTER="otlp") is None
    assert make(CLAUDE_CODE_ENABLE_TELEMETRY="0") is None
    theirs = json.dumps({"env": {"OTEL_LOGS_EXPORTER": "otlp"}})
    for folder, name in ((home, "settings.json"), (work, "settings.local.json")):
        path = folder / ".claude" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(theirs)
        assert make() is None
        path.unlink()
    managed = tmp_path / "managed.json"
    monkeypatch.setattr(own_settings, "MANAGED", managed)
    managed.write_text(json.dumps({"otelHeadersHelper": "/bin/headers"}))
    assert make() is None
