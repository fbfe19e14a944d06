"""`sm top` with many sessions: until it is on screen, until a key is answered, and at rest."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sm.store import events
from sm.store.paths import name_session
from tests.bench.crowd import Crowd, make_crowd
from tests.bench.measure import Bench, Figure, in_turns, used_s, wall_ms
from tests.shell import BIN

SHOWN_MS, KEY_MS, REST_PERCENT = 600, 50, 1
GIVE_UP_S = 60.0
FEWEST = 3
"""Sessions between which a key can move."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Each beside what else is there: `sm status`, which shows the same once."""
    count = max(FEWEST, *bench.sizes((200,), (50,)))
    crowd = make_crowd(bench.folder / "crowd", count, awaiting=False)
    try:
        crowd.stage.poll()
        happened = bench.rounds(50_000, 5_000)
        _fill_journal(crowd, happened)
        os.environ.update(SM_CONFIG=str(crowd.stage.config), SM_PYTHON=sys.executable)
        what = f"{count} sessions, {happened:,} events"
        shown, answering, status, imported = in_turns(
            bench.rounds(9, 4),
            _take_start,
            _take_first_key,
            wall_ms(str(BIN / "sm"), "status"),
            wall_ms(sys.executable, "-Ic", "import textual.app, textual.widgets"),
        )
        yield Figure(
            name=f"sm top on screen, {what}",
            unit="ms",
            samples=shown,
            budget=SHOWN_MS,
            beside="sm status",
            others=status,
        )
        yield Figure(
            name="until it answers a key that was pressed at once",
            unit="ms",
            samples=answering,
            beside="textual imported",
            others=imported,
        )
        with _running() as top:
            top.take_key_ms()  # from here on it answers
            keys = [top.take_key_ms() for _ in range(bench.rounds(60, 20))]
            yield Figure(name="a key answered", unit="ms", samples=keys, budget=KEY_MS)
            busy = [top.take_busy_key_ms(crowd, n) for n in range(bench.rounds(60, 20))]
            yield Figure(
                name="a key answered while sessions change",
                unit="ms",
                samples=busy,
                budget=KEY_MS,
            )
            time.sleep(bench.seconds(5))
            rest = [top.take_rest_percent(bench.seconds(60))]
            yield Figure(
                name=f"at rest, {count} sessions", unit="%", samples=rest, budget=REST_PERCENT
            )
    finally:
        crowd.held.close()
        crowd.stage.end()


def _fill_journal(crowd: Crowd, count: int) -> None:
    """So many events of the past, of all sessions."""
    begun, names = time.time() - count, [_name(n) for n in range(1, crowd.count + 1)]
    with crowd.project.root.journal.open("ab") as file:
        for n in range(count):
            event = events.MessageSent(
                at=begun + n,
                session=names[n % len(names)],
                id=f"{n:016x}",
                mode="sequential",
                status="accepted",
            )
            file.write(msgspec.json.encode(event) + b"\n")


def _name(issue: int) -> str:
    return name_session("harb", issue)


class _Top:
    """The program in a terminal of its own."""

    def __init__(self) -> None:
        self.fd, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        env = os.environ | {"TERM": "xterm-256color"}
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", sys.executable, "-Im", "sm", "top"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
        )
        os.close(slave)

    def await_output(self, pattern: bytes) -> float:
        """Wait until it has written that; return the moment."""
        said, end = b"", time.perf_counter() + GIVE_UP_S
        while time.perf_counter() < end:
            if select.select([self.fd], [], [], 0.5)[0]:
                said += os.read(self.fd, 65536)
                if re.search(pattern, said):
                    return time.perf_counter()
        raise AssertionError(f"nothing like {pattern!r} within {GIVE_UP_S:g} s: {said[-500:]!r}")

    def drain(self, quiet_s: float = 0.05) -> None:
        """Take in what it still writes."""
        while select.select([self.fd], [], [], quiet_s)[0]:
            os.read(self.fd, 65536)

    def take_key_ms(self) -> float:
        """From a key until another session is marked, in milliseconds."""
        self.drain()
        begun = time.perf_counter()
        os.write(self.fd, b"j")
        return (self.await_output(rb"\x1b\[[0-9;]*7m +harb#") - begun) * 1000

    def take_busy_key_ms(self, crowd: Crowd, n: int) -> float:
        """The same while a thread reads what has changed."""
        for one in range(10):
            event = events.Monitor(session=_name((n + one) % crowd.count + 1), state="started")
            crowd.project.record(event)
        time.sleep(0.2)
        begun = time.perf_counter()
        os.write(self.fd, b"j" if n % 2 else b"k")
        return (self.await_output(rb"\x1b\[[0-9;]*7m +harb#") - begun) * 1000

    def take_rest_percent(self, seconds: float) -> float:
        """How much of a processor it takes while nothing happens."""
        [child] = _list_children(self.process.pid)
        before, begun = used_s(child), time.perf_counter()
        while (left := begun + seconds - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                os.read(self.fd, 65536)
        return 100 * (used_s(child) - before) / (time.perf_counter() - begun)

    def close(self) -> None:
        """End it."""
        for child in _list_children(self.process.pid):
            os.kill(child, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


@contextmanager
def _running() -> Iterator[_Top]:
    with _started() as top:
        top.await_output(rb"harb#1 ")
        yield top


def _take_start() -> float:
    """From its call until a session is on the screen."""
    with _started() as top:
        return (top.await_output(rb"harb#1 ") - top.begun) * 1000


def _take_first_key() -> float:
    """From its call until a key has moved the selection that was pressed as soon as it could be."""
    with _started() as top:
        top.await_output(rb"harb#1 ")
        os.write(top.fd, b"j")
        return (top.await_output(rb"\x1b\[[0-9;]*7m +harb#2") - top.begun) * 1000


@contextmanager
def _started() -> Iterator[_Top]:
    top = _Top()
    try:
        yield top
    finally:
        top.close()


def _list_children(pid: int) -> list[int]:
    """The processes that `setsid` has begun; it may have become the program itself."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in found] or [pid]
