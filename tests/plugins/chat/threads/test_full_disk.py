"""Handoffs on a disk that is full, or cannot be written: said in one line, nothing half-written."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client as McpClient
from mcp.types import TextContent

from sm.__main__ import run
from sm.plugins.chat.mcp.server import Tools, make_server
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import HandoffClient
from sm.sessions import machine as machines
from sm.sessions.caller import Caller
from sm.store.paths import Root
from tests.disks import fill, small_disk

LONG = "x" * 20_000
"""Five pages."""


@pytest.fixture
def disk(tmp_path: Path, root: Root) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    with small_disk(path, "1m") as mounted:
        yield mounted


@pytest.fixture
def database(disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = disk / "db" / "core.db"
    monkeypatch.setenv("SM_BRIDGE_DATABASE", str(path))
    return path


def created(database: Path) -> str:
    with open_bridge(database) as handoffs:
        return handoffs.create("t", "c", client=HandoffClient.CHAT).handoff.id


def contents(database: Path, ident: str) -> list[str]:
    """What is in the handoff, of a database that is whole."""
    with open_bridge(database) as handoffs:
        [(found,)] = handoffs.connection.execute("PRAGMA integrity_check")
        assert found == "ok"
        thread = handoffs.get(ident, HandoffClient.CHAT)
    assert thread.handoff.chat_last_seen == thread.entries[-1].seq
    return [entry.content for entry in thread.entries]


def no_space(database: Path) -> str:
    return f"no space left for '{database}': nothing was written; make room, then try again"


def test_a_database_is_made_whole_or_not_at_all_whatever_room_there_is(
    disk: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = []
    for pages in range(32):
        ballast = fill(disk, but_for=pages)
        codes.append(run(["bridge", "create", "t", "c"]))
        stdout, stderr = capsys.readouterr()
        ballast.unlink()
        if codes[-1]:
            assert (codes[-1], stdout, stderr) == (4, "", f"sm: {no_space(database)}\n")
            stdout = created(database)
        assert contents(database, stdout.strip()) == ["c"]
        with open_bridge(database) as handoffs:
            assert handoffs.connection.execute("SELECT count(*) FROM handoffs").fetchone() == (1,)
        shutil.rmtree(database.parent)
    assert set(codes) == {0, 4}
    assert codes == sorted(codes, reverse=True)


@pytest.mark.parametrize("is_open", [False, True], ids=["alone", "beside another"])
def test_an_entry_is_there_if_and_only_if_it_was_said_to_be(
    disk: Path,
    database: Path,
    request: pytest.FixtureRequest,
    is_open: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ident, expected, codes = created(database), ["c"], set()
    if is_open:  # the journal and its index are made by the first, and stay for the others
        other = sqlite3.connect(database)
        request.addfinalizer(other.close)
        assert other.execute("SELECT count(*) FROM handoffs").fetchone()
    for pages in range(20):
        ballast = fill(disk, but_for=pages)
        code = run(["bridge", "add", ident, "task", f"{pages} {LONG}"])
        stdout, stderr = capsys.readouterr()
        ballast.unlink()
        if code == 0:
            expected.append(f"{pages} {LONG}")
        else:
            assert (code, stdout, stderr) == (4, "", f"sm: {no_space(database)}\n")
        assert contents(database, ident) == expected
        codes.add(code)
    assert codes == {0, 4}


def test_what_is_there_can_be_read_and_closed_once_there_is_room(
    disk: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ident = created(database)
    ballast = fill(disk)
    for args in (("get", ident), ("read", ident), ("close", ident)):
        assert run(["bridge", *args]) == 4
        assert capsys.readouterr() == ("", f"sm: {no_space(database)}\n")
    ballast.unlink()
    assert contents(database, ident) == ["c"]
    assert run(["bridge", "close", ident]) == 0


def test_a_tool_says_that_the_disk_is_full_and_works_once_there_is_room(
    disk: Path, database: Path
) -> None:
    ident = created(database)

    async def add(client: McpClient) -> tuple[bool, str]:
        arguments = {"id": ident, "type": "task", "content": LONG}
        result = await client.call_tool("add_to_handoff", arguments)
        [block] = result.content
        assert isinstance(block, TextContent)
        return bool(result.is_error), block.text

    async def talk() -> None:
        async with McpClient(make_server(Tools(machines.load_here(None), Caller()), "0")) as client:
            ballast = fill(disk)
            assert await add(client) == (True, no_space(database))
            ballast.unlink()
            assert (await add(client))[0] is False

    anyio.run(talk)
    assert contents(database, ident) == ["c", LONG]


def test_on_a_file_system_that_is_read_only_it_says_so(
    disk: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ident = created(database)
    before = {path: path.read_bytes() for path in database.parent.iterdir()}
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for args in (("get", ident), ("add", ident, "task", "x"), ("close", ident)):
        assert run(["bridge", *args]) == 1
        stdout, stderr = capsys.readouterr()
        assert stdout == ""
        assert stderr.startswith(f"sm: cannot write '{database}', or beside it: ")
    assert {path: path.read_bytes() for path in database.parent.iterdir()} == before
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert contents(database, ident) == ["c"]
