"""What docs/BRIDGE.md shows is what happens: its tool calls, and its lines of a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult

from sm.__main__ import run
from sm.plugins.chat.mcp.schemas import TOOLS
from sm.plugins.chat.threads.database import LAYOUT, MIGRATIONS
from sm.store.paths import Root
from sm.store.sqlite import open_shared
from tests.shell import REPOSITORY

JSON = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
ID = re.compile(r"hof_[\w-]{21}")
SHELL = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d\.\d+)?(Z| UTC)")

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture(scope="module")
def document() -> str:
    return (REPOSITORY / "docs" / "BRIDGE.md").read_text()


def alike(text: str) -> str:
    """A text without what differs each time: ids and times."""
    return TIME.sub("TIME", ID.sub("ID", text))


def exchanges(document: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each call, and the result that follows it, None where none is shown."""
    found = [json.loads(block) for block in JSON.findall(document)]
    for block, following in zip(found, [*found[1:], {}], strict=True):
        if "name" in block:
            yield block, following if "handoff" in following else None


def test_the_calls_have_the_results_that_are_shown(document: str) -> None:
    async def talk() -> list[CallToolResult]:
        argv = ["-Im", "sm", "mcp"]
        started = StdioServerParameters(command=sys.executable, args=argv, env=dict(os.environ))
        results: list[CallToolResult] = []
        async with Client(stdio_client(started)) as client:
            for call, _ in exchanges(document):
                made = results[0].structured_content["handoff"]["id"] if results else ""
                arguments = json.loads(ID.sub(made, json.dumps(call["arguments"])))
                result = await client.call_tool(call["name"], arguments)
                assert isinstance(result, CallToolResult)
                results.append(result)
        return results

    shown = list(exchanges(document))
    assert {call["name"] for call, _ in shown} == {tool.name for tool in TOOLS}
    assert sum(expected is not None for _, expected in shown) >= 3
    for (_, expected), result in zip(shown, anyio.run(talk), strict=True):
        assert not result.is_error
        if expected is not None:
            said = json.dumps(result.structured_content)
            assert json.loads(alike(said)) == json.loads(alike(json.dumps(expected)))


def test_the_lines_of_a_shell_print_what_is_shown(document: str, tmp_path: Path) -> None:
    [session] = [one for one in SHELL.findall(document) if "sm bridge" in one]
    program = tmp_path / "sm"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -Im sm "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    made = ""
    for line, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        done = subprocess.run(
            ID.sub(made, line), shell=True, capture_output=True, text=True, env=env, check=False
        )
        made = made or done.stdout.strip()
        assert alike(done.stdout + done.stderr) == alike(shown), line


def test_the_tables_are_those_of_the_database(document: str, root: Root) -> None:
    [shown] = re.findall(r"^```sql\n(.*?)^```", document, re.MULTILINE | re.DOTALL)
    assert len(MIGRATIONS) == 2, "the document shows the layout that these two make"
    with (
        open_shared(root.path / "core.db", LAYOUT) as made,
        open_shared(root.path / "shown.db", LAYOUT) as other,
    ):
        for (table,) in made.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"):
            if table.startswith("sqlite_"):
                continue
            columns = made.execute(f"PRAGMA table_info({table})").fetchall()
            other.execute(f"DROP TABLE {table}")
            other.execute(re.findall(rf"CREATE TABLE {table} .*?;", shown, re.DOTALL)[0])
            assert other.execute(f"PRAGMA table_info({table})").fetchall() == columns


def test_the_answers_to_mistakes_are_those_that_are_shown(
    document: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*args: str) -> str:
        run(["bridge", *args])
        found = capsys.readouterr()
        return (found.out + found.err).removeprefix("sm: ").strip()

    ident, closed = said("create", "t", "c"), said("create", "t", "c")
    said("close", closed)
    answers = [
        said("get", " "),
        said("get", "hof_" + "a" * 21),
        said("add", ident, "answer", "x"),
        said("get", ident, "--as", "desktop"),
        said("add", closed, "done", "x"),
        said("add", ident, "done", " "),
        said("add", ident, "done", "é" * 500_001),
    ]
    section = document.partition("## When something is wrong")[2].partition("\n## ")[0]
    shown = re.findall(r"\| `(.+)` \|$", section, re.MULTILINE)
    assert [ID.sub("hof_…", answer) for answer in answers] == shown
