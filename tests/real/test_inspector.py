"""The five tools, as the MCP Inspector's command-line mode lists and calls them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sm.store.paths import Root
from tests.real.inspector import Answer, Inspector, inspector
from tests.serving import serving

NAMES = ["create_handoff", "get_handoff", "add_to_handoff", "mark_handoff_read", "close_handoff"]
HTTP = ("mcp", "--http")
FAILED = 5
"""The Inspector's exit code when the server calls its answer an error."""


@dataclass
class Line:
    """An Inspector, and how it reaches the server: a command, or a URL with options."""

    inspector: Inspector
    server: tuple[str, ...]

    def ask(self, method: str, **arguments: str) -> Answer:
        return self.inspector.ask(method, *self.server, **arguments)

    def call(self, name: str, **arguments: str) -> dict[str, Any]:
        """The structured result of a call, which its text has to repeat."""
        answer = self.tool(name, **arguments)
        assert (answer.code, answer.result["isError"]) == (0, False), answer
        found = answer.result["structuredContent"]
        assert isinstance(found, dict)
        assert json.loads(text(answer)) == found
        return found

    def tool(self, name: str, **arguments: str) -> Answer:
        server = (*self.server, "--tool-name", name)
        return self.inspector.ask("tools/call", *server, **arguments)


def text(answer: Answer) -> str:
    [block] = answer.result["content"]
    return str(block["text"])


@pytest.fixture(params=["stdio", "http", "http with a token"])
def line(request: pytest.FixtureRequest, root: Root, tmp_path: Path) -> Iterator[Line]:
    program = inspector(tmp_path / "home")
    if request.param == "stdio":
        # Of our environment, the Inspector hands on to a server only what it is told to.
        known = ("-e", f"SM_STATE_ROOT={root.path}")
        yield Line(program, (sys.executable, "-Im", "sm", "mcp", *known))
        return
    protected = request.param != "http"
    env = {"SM_SERVE_TOKEN": "t" * 32} if protected else {}
    header = ("--header", f"Authorization: Bearer {'t' * 32}") if protected else ()
    with serving(tmp_path, verb=HTTP, env=env) as served:
        yield Line(program, (served.url, "--transport", "http", *header))


def test_the_inspector_lists_all_five_tools(line: Line) -> None:
    answer = line.ask("tools/list")
    assert answer.code == 0
    tools = {tool["name"]: tool for tool in answer.result["tools"]}
    assert list(tools) == NAMES
    for tool in tools.values():
        assert tool["title"]
        assert tool["description"]
        assert tool["inputSchema"]["properties"]
        assert tool["outputSchema"]["properties"]["handoff"]
    hints = {name: tool["annotations"] for name, tool in tools.items()}
    assert [name for name in NAMES if hints[name].get("readOnlyHint")] == ["get_handoff"]
    assert [name for name in NAMES if hints[name].get("destructiveHint")] == ["close_handoff"]


@pytest.mark.parametrize("line", ["stdio", "http"], indirect=True)
def test_the_inspector_calls_all_five_tools(line: Line) -> None:
    made = line.call("create_handoff", title="Auth", content="JWT.", project="dnd")
    ident = made["handoff"]["id"]
    code = {"id": ident, "as_client": "code"}
    seen = line.call("get_handoff", **code)
    assert seen["handoff"] == made["handoff"]
    assert (seen["new_count"], seen["new_entries"]) == (1, made["entries"])
    assert made["entries"][0]["content"] == "JWT."
    added = line.call("add_to_handoff", **code, type="question", content="7d or 30d?")
    assert (added["entry"]["from_client"], added["entry"]["type"]) == ("code", "question")
    read = line.call("mark_handoff_read", id=ident)
    assert read["handoff"]["chat_last_seen"] == added["entry"]["seq"]
    closed = line.call("close_handoff", id=ident)
    assert closed["handoff"]["status"] == "completed"
    late = line.tool("add_to_handoff", id=ident, type="decision", content="30 days.")
    assert (late.code, late.result["isError"]) == (FAILED, True)
    assert "is completed" in text(late)
