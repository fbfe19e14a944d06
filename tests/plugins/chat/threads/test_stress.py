"""Twenty writers of one handoff, some killed: nothing lost, nothing doubled, all in order."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import HandoffClient
from tests.chance import dice
from tests.helpers import wait_for

_given = dict(os.environ)
WRITERS, KILLED = 20, 7
ENTRIES = int(_given.get("SM_SOAK_ENTRIES", "150"))

PROGRAM = """
import sys
from pathlib import Path
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import HandoffClient, EntryType

path, ident, writer, entries = sys.argv[1:]
client = HandoffClient.CODE if int(writer) % 2 else HandoffClient.CHAT
with open_bridge(Path(path)) as handoffs:
    for number in range(int(entries)):
        handoffs.add(ident, EntryType.PROGRESS, f"{writer} {number}", client)
        print(number, flush=True)
"""


class Writer:
    """A process that adds its entries one after another, and says after each that it is in."""

    def __init__(self, path: Path, ident: str, number: int, entries: int) -> None:
        self.number = number
        self.said = path.with_name(f"said-{number}")
        arguments = (str(path), ident, str(number), str(entries))
        with self.said.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *arguments], stdout=output
            )

    def acknowledged(self) -> int:
        return self.said.read_bytes().count(b"\n")

    def kill(self, after: int) -> None:
        """With SIGKILL, behind so many entries."""
        wait_for(lambda: self.acknowledged() >= after, "some entries", 60)
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if there is such a place: what a kill leaves is the same on a disk."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="sm-test-", dir=shared) as folder:
        yield Path(folder)


@pytest.mark.sweep
@pytest.mark.timeout(120 + ENTRIES // 5)
def test_twenty_writers_of_one_handoff_lose_and_double_nothing(memory: Path) -> None:
    path, chance = memory / "core.db", dice(5)
    with open_bridge(path) as handoffs:
        ident = handoffs.create("t", "c", client=HandoffClient.CHAT).handoff.id
    doomed = chance.sample(range(WRITERS), KILLED)
    writers = [
        Writer(path, ident, number, sys.maxsize if number in doomed else ENTRIES)
        for number in range(WRITERS)
    ]
    for number in doomed:
        writers[number].kill(chance.randrange(1, ENTRIES))
    assert {one.process.wait() for one in writers if one.number not in doomed} == {0}

    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with open_bridge(path) as handoffs:
        thread = handoffs.get(ident, HandoffClient.CHAT)
    numbers = [entry.seq for entry in thread.entries]
    assert numbers == sorted(set(numbers))
    found: dict[int, list[int]] = {number: [] for number in range(WRITERS)}
    for entry in thread.entries[1:]:
        name, number = map(int, entry.content.split())
        found[name].append(number)
    for writer in writers:
        mine, told = found[writer.number], writer.acknowledged()
        assert mine == list(range(len(mine))), "each once, in the order in which it was written"
        # Whoever is killed may have written one that it could not tell of any more.
        assert told <= len(mine) <= told + (writer.number in doomed)
        assert writer.number in doomed or told == ENTRIES
    for client in HandoffClient:
        last = [entry.seq for entry in thread.entries if entry.from_client is client][-1]
        assert thread.handoff.last_seen(client) == last


SERVER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import HandoffClient, EntryType

def add(number):
    with open_bridge(Path(sys.argv[1])) as handoffs:
        return handoffs.add(sys.argv[2], EntryType.TASK, "x", HandoffClient.CHAT)[1].seq

with ThreadPoolExecutor(12) as threads:
    print(*threads.map(add, range(100)))
"""


def test_servers_that_open_it_for_each_call_at_once_lose_nothing(memory: Path) -> None:
    path = memory / "core.db"
    with open_bridge(path) as handoffs:
        ident = handoffs.create("t", "c", client=HandoffClient.CHAT).handoff.id
    argv = [sys.executable, "-c", SERVER, str(path), ident]
    servers = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [int(seq) for server in servers for seq in server.communicate()[0].split()]
    with open_bridge(path) as handoffs:
        found = [entry.seq for entry in handoffs.entries(ident)][1:]
    assert (sorted(said), len(found)) == (found, 200)
