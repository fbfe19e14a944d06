"""`sm mcp`, as a client meets it: its start, a call to it, the memory that it waits in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import HandoffClient
from sm.sessions.machine import load_here
from tests.bench.bridge import LENGTH, filled
from tests.bench.measure import Bench, Figure, call_ms, in_turns, run
from tests.serving import STARTED, Served, serving

PYTHON = (sys.executable, "-Ic")
NOTHING = "pass"
SDK = "import mcp.server.lowlevel"
ASLEEP = "import time; print(flush=True); time.sleep(600)"
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def figures(bench: Bench) -> Iterator[Figure]:
    """The start beside that of the SDK, calls beside the same in this process."""
    yield from _starting(bench)
    yield from _calling(bench)
    yield from _waiting()


class Talk:
    """A server that was started, and is talked to over its standard input."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-Im", "sm", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(_request(method, params)).encode() + b"\n")
        self.process.stdin.flush()
        return _result(json.loads(self.process.stdout.readline()))

    def greet(self) -> None:
        assert self.process.stdin
        self.ask("initialize", HELLO)
        said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        self.process.stdin.write(json.dumps(said).encode() + b"\n")

    def end(self) -> float:
        """Close its input; returns the milliseconds of a processor that it took."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        assert self.process.returncode == 0
        return (used.ru_utime + used.ru_stime) * 1000


def _starting(bench: Bench) -> Iterator[Figure]:
    listed, ours, sdk = [], [], []

    def start() -> float:
        started = time.perf_counter()
        talk = Talk()
        talk.greet()
        took = (time.perf_counter() - started) * 1000
        assert talk.ask("tools/list", {})["tools"]
        listed.append((time.perf_counter() - started) * 1000)
        ours.append(talk.end())
        return took

    def load() -> float:
        sdk.append(run((*PYTHON, SDK)).cpu_s * 1000)
        started = time.perf_counter()
        argv = (*PYTHON, f"{SDK}; print(flush=True)")
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:  # ending takes it long, too
            assert process.stdout
            process.stdout.readline()
            return (time.perf_counter() - started) * 1000

    rounds = bench.rounds(15, 5)
    greeted, loaded, bare = in_turns(
        rounds, start, load, lambda: run((*PYTHON, NOTHING)).wall_s * 1000
    )
    yield _beside("sm mcp, start to initialize", SDK, greeted, loaded)
    yield _beside("sm mcp, start to tools/list", SDK, listed[-rounds:], loaded)
    yield _beside("    processor, until it has ended", SDK, ours[-rounds:], sdk[-rounds:])
    yield _beside("sm mcp, start to initialize", "python -Ic pass", greeted, bare)


def _calling(bench: Bench) -> Iterator[Figure]:
    path = load_here(None).settings.bridge_database
    path.parent.mkdir(mode=0o700, parents=True)
    _, ident = filled(path)
    params = {"name": "get_handoff", "arguments": {"id": ident}}

    def here_read() -> None:
        with open_bridge(path) as handoffs:
            assert len(handoffs.get(ident, HandoffClient.CHAT).entries) == LENGTH

    with (
        _talking() as talk,
        serving(bench.folder, verb=("mcp", "--http"), program=STARTED) as served,
    ):
        stdio, http, inside = in_turns(
            bench.rounds(50, 15),
            call_ms(lambda: _read(talk.ask("tools/call", params))),
            call_ms(lambda: _read(_posted(served, params))),
            call_ms(here_read),
        )
    for name, samples in (("stdio", stdio), ("HTTP, a connection each", http)):
        yield _beside(f"get_handoff over {name}", "in this process", samples, inside)


def _read(result: Any) -> None:
    assert len(result["structuredContent"]["entries"]) == LENGTH, result


def _posted(served: Served, params: dict[str, Any]) -> Any:
    accept = "application/json, text/event-stream"
    return _result(served.post("/mcp", _request("tools/call", params), accept=accept).body)


def _request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _result(answer: Any) -> Any:
    assert "result" in answer, answer
    return answer["result"]


@contextmanager
def _talking() -> Iterator[Talk]:
    talk = Talk()
    try:
        talk.greet()
        yield talk
    finally:
        talk.end()


def _waiting() -> Iterator[Figure]:
    with _talking() as talk:
        idle = _resident_mb(talk.process.pid)
    for beside, code in ((SDK, f"{SDK}; {ASLEEP}"), ("a Python asleep", ASLEEP)):
        with subprocess.Popen((*PYTHON, code), stdout=subprocess.PIPE) as sleeper:
            assert sleeper.stdout
            sleeper.stdout.readline()
            other = _resident_mb(sleeper.pid)
            sleeper.kill()
        yield Figure(
            name="sm mcp, idle (RSS)", unit="MB", samples=[idle], beside=beside, others=[other]
        )


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError(f"no RSS of process {pid}")


def _beside(name: str, beside: str, samples: list[float], others: list[float]) -> Figure:
    return Figure(name=name, unit="ms", samples=samples, beside=beside, others=others)
