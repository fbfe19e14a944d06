"""The five tools, as the official SDK's client meets them over both transports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent, Tool

from sm.plugins.chat.mcp.server import Tools
from sm.sessions import machine as machines
from sm.sessions.caller import Caller
from sm.store.paths import Root
from tests.helpers import HANG_S
from tests.residents import settle
from tests.serving import serving

pytestmark = pytest.mark.long_lived

SM = [sys.executable, "-Im", "sm"]
ARGV = [*SM, "mcp"]
HTTP = ("mcp", "--http")
NAMES = ["create_handoff", "get_handoff", "add_to_handoff", "mark_handoff_read", "close_handoff"]
UNKNOWN = "hof_" + "a" * 21


@dataclass
class Transport:
    """How a client reaches a server of its own, or the one that runs."""

    name: str
    url: str = ""

    def client(self) -> Client:
        if self.url:
            return Client(self.url)
        command, *args = ARGV
        return Client(
            stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)))
        )

    def run(self, talk: Callable[[Client], Awaitable[Any]]) -> Any:
        """What `talk` returns, with a client that is connected."""

        async def connected() -> Any:
            with anyio.fail_after(60):
                async with self.client() as client:
                    return await talk(client)

        return anyio.run(connected)

    def call(self, name: str, **arguments: object) -> CallToolResult:
        result = self.run(lambda client: client.call_tool(name, arguments))
        assert isinstance(result, CallToolResult)
        return result


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest, root: Root, tmp_path: Path) -> Iterator[Transport]:
    if request.param == "stdio":
        yield Transport("stdio")
        return
    with serving(tmp_path, verb=HTTP) as served:
        yield Transport("http", served.url)


def text(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


def test_all_five_tools_are_there_and_described(transport: Transport) -> None:
    listed = transport.run(lambda client: client.list_tools())
    tools: dict[str, Tool] = {tool.name: tool for tool in listed.tools}
    assert list(tools) == NAMES
    for tool in tools.values():
        assert len(tool.description or "") > 60
        assert tool.annotations
        assert tool.annotations.open_world_hint is False
        assert tool.output_schema
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        known = tool.input_schema["properties"]
        assert "as_client" not in known or known["as_client"]["default"] == "chat"
        assert tool.input_schema["additionalProperties"] is False
    required = {name: tool.input_schema["required"] for name, tool in tools.items()}
    assert required == {
        "create_handoff": ["title", "content"],
        "get_handoff": ["id"],
        "add_to_handoff": ["id", "type", "content"],
        "mark_handoff_read": ["id"],
        "close_handoff": ["id"],
    }
    hints = {name: tool.annotations for name, tool in tools.items()}
    assert [name for name in NAMES if hints[name].read_only_hint] == ["get_handoff"]  # type: ignore[union-attr]
    assert [name for name in NAMES if hints[name].destructive_hint] == ["close_handoff"]  # type: ignore[union-attr]


def test_a_whole_thread_goes_back_and_forth(transport: Transport) -> None:
    async def talk(client: Client) -> None:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}

        async def call(name: str, **arguments: object) -> dict[str, Any]:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result
            found, schema = result.structured_content, schemas[name]
            assert schema is not None
            Draft202012Validator(schema).validate(found)
            assert json.loads(text(result)) == found
            assert isinstance(found, dict)
            return found

        made = await call("create_handoff", title="Auth", content="JWT.", project="dnd")
        ident = made["handoff"]["id"]
        assert [entry["content"] for entry in made["entries"]] == ["JWT."]
        code = {"id": ident, "as_client": "code"}
        seen = await call("get_handoff", **code)
        assert (seen["new_count"], seen["new_entries"]) == (1, made["entries"])
        marked = await call("mark_handoff_read", **code)
        assert marked["handoff"]["code_last_seen"] == made["entries"][0]["seq"]
        asked = await call("add_to_handoff", **code, type="question", content="7d or 30d?")
        assert asked["entry"]["from_client"] == "code"
        seen = await call("get_handoff", id=ident)
        assert [entry["content"] for entry in seen["new_entries"]] == ["7d or 30d?"]
        await call("add_to_handoff", id=ident, type="decision", content="30 days.")
        seen = await call("get_handoff", **code)
        assert [entry["content"] for entry in seen["new_entries"]] == ["30 days."]
        closed = await call("close_handoff", id=ident)
        assert closed["handoff"]["status"] == "completed"
        assert (await call("get_handoff", id=ident))["entries"] == []

    transport.run(talk)


MISTAKES: list[tuple[str, dict[str, object], str]] = [
    ("get_handoff", {"id": UNKNOWN}, f"no handoff '{UNKNOWN}': check the id with the person"),
    ("get_handoff", {"id": "hof_1"}, "no handoff 'hof_1': check the id with the person"),
    ("get_handoff", {"id": "hof_1\n2"}, "'hof_1\n2' is not the id of a handoff: an id is short"),
    ("get_handoff", {}, "'id' is missing"),
    ("get_handoff", {"id": UNKNOWN, "as_client": "desktop"}, "unknown client 'desktop': 'code'"),
    ("get_handoff", {"id": UNKNOWN, "all": True}, "get_handoff has no parameter 'all': it takes"),
    (
        "add_to_handoff",
        {"id": UNKNOWN, "type": "answer", "content": "x"},
        "unknown type 'answer': use one of context, task, progress, question, decision, done",
    ),
    ("add_to_handoff", {"id": UNKNOWN, "type": "task", "content": " "}, "'content' is empty"),
    (
        "add_to_handoff",
        {"id": UNKNOWN, "type": "task", "content": "é" * 500_001},
        "'content' has 1,000,002 bytes, 1,000,000 are allowed",
    ),
    ("create_handoff", {"title": "t"}, "'content' is missing"),
    ("create_handoff", {"title": "t", "content": 7}, "'content' is not a text"),
    ("create_handoff", {"title": "t", "content": "c", "issue": 7}, "an issue needs its project"),
    ("list_handoffs", {}, "no tool 'list_handoffs': there are create_handoff,"),
]


def test_every_mistake_is_answered_with_what_to_do(transport: Transport) -> None:
    async def talk(client: Client) -> list[CallToolResult]:
        return [await client.call_tool(name, arguments) for name, arguments, _ in MISTAKES]

    for (_, _, expected), result in zip(MISTAKES, transport.run(talk), strict=True):
        assert result.is_error
        assert text(result).startswith(expected)


def test_a_completed_handoff_says_how_to_go_on(transport: Transport) -> None:
    async def talk(client: Client) -> CallToolResult:
        made = await client.call_tool("create_handoff", {"title": "t", "content": "c"})
        assert made.structured_content
        ident = made.structured_content["handoff"]["id"]
        await client.call_tool("close_handoff", {"id": ident})
        return await client.call_tool(
            "add_to_handoff", {"id": ident, "type": "done", "content": "x"}
        )

    result = transport.run(talk)
    assert result.is_error
    assert "is completed" in text(result)
    assert "create a new one" in text(result)


def test_a_content_of_the_largest_size_goes_through(transport: Transport) -> None:
    content = "\x01" * 1_000_000  # six bytes each on the way
    made = transport.call("create_handoff", title="t", content=content).structured_content
    assert made["entries"][0]["content"] == content


def test_what_is_wrong_with_the_database_is_told(transport: Transport, sealed: Path) -> None:
    path = sealed / ".local" / "share" / "sm" / "core.db"
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_bytes(b"no database" * 100)
    path.chmod(0o600)
    result = transport.call("create_handoff", title="t", content="c")
    assert result.is_error
    assert "is damaged: nothing was written" in text(result)


def test_two_servers_and_a_shell_write_to_a_handoff_at_once(root: Root, tmp_path: Path) -> None:
    said: dict[str, list[int]] = {"http": [], "stdio": [], "shell": []}
    is_over = anyio.Event()

    async def call(client: Client, name: str, **arguments: object) -> dict[str, Any]:
        result = await client.call_tool(name, arguments)
        found = result.structured_content
        assert not result.is_error, result
        assert isinstance(found, dict)
        return found

    async def keep_adding(client: Client, name: str, ident: str, as_client: str) -> None:
        while not is_over.is_set():
            by = {"id": ident, "as_client": as_client}
            made = await call(client, "add_to_handoff", **by, type="progress", content=name)
            said[name].append(made["entry"]["seq"])

    async def add_by_shell(ident: str) -> None:
        argv = [*SM, "bridge", "add", ident, "task", "shell", "--json"]
        for _ in range(4):
            printed = (await anyio.run_process(argv)).stdout
            said["shell"].append(json.loads(printed)["entry"]["seq"])
        is_over.set()

    async def talk(url: str) -> list[dict[str, Any]]:
        with anyio.fail_after(60):
            async with Transport("http", url).client() as one, Transport("stdio").client() as two:
                ident = (await call(one, "create_handoff", title="t", content="c"))["handoff"]["id"]
                async with anyio.create_task_group() as group:
                    group.start_soon(keep_adding, one, "http", ident, "chat")
                    group.start_soon(keep_adding, two, "stdio", ident, "code")
                    group.start_soon(add_by_shell, ident)
                return [await call(client, "get_handoff", id=ident) for client in (one, two)]

    with serving(tmp_path, verb=HTTP) as served:
        found, again = anyio.run(talk, served.url)
    assert found == again
    seqs = {name: [e["seq"] for e in found["entries"] if e["content"] == name] for name in said}
    assert seqs == said, "each entry once, in the order in which it was added"
    assert found["handoff"]["chat_last_seen"] == max(said["http"] + said["shell"])
    assert found["handoff"]["code_last_seen"] == max(said["stdio"])
    for name in ("http", "stdio"):
        assert min(said[name]) < said["shell"][1], "at once"
        assert max(said[name]) > said["shell"][-2], "at once"


def test_over_http_a_client_does_not_notice_a_new_server(root: Root, tmp_path: Path) -> None:
    with serving(tmp_path, verb=HTTP) as served:
        port = str(served.port)

        async def talk(client: Client) -> bool:
            await client.call_tool("create_handoff", {"title": "t", "content": "c"})
            served.stop()
            with serving(tmp_path, "--port", port, verb=HTTP):
                made = await client.call_tool("create_handoff", {"title": "t", "content": "c"})
            return made.is_error

        assert Transport("http", served.url).run(talk) is False


def test_over_http_only_who_has_the_token_is_let_in(root: Root, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    token.chmod(0o600)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with serving(tmp_path, "--token-file", str(token), verb=HTTP) as served:
        accept = "application/json, text/event-stream"
        assert served.post("/mcp", body, accept=accept).status == 401
        said = served.post("/mcp", body, accept=accept, authorization=f"Bearer {'t' * 32}")
        assert said.status == 200, said
    with serving(tmp_path, verb=HTTP) as served:
        assert served.post("/mcp", body, accept=accept, origin="http://evil.example").status == 403
        assert served.post("/mcp", body, accept=accept, host="evil.example").status == 403


def test_other_machines_need_a_token(root: Root, tmp_path: Path) -> None:
    argv = [*SM, "mcp", "--http", "--host", "0.0.0.0", "--port", "0"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 2
    assert "set a token" in done.stderr


def test_an_agent_of_sm_is_the_coding_client_whatever_it_forgets_to_say(
    root: Root, tmp_path: Path
) -> None:
    agent = Caller(settle(root, tmp_path, "s-000000aa"))
    tools = Tools(machines.load_here(None), agent)
    made = tools.call("create_handoff", {"title": "t", "content": "c"}).structured_content
    assert made
    assert made["entries"][0]["from_client"] == "code"
    wrong = {"id": made["handoff"]["id"], "type": "decision", "content": "x", "as_client": "chat"}
    refused = tools.call("add_to_handoff", wrong)
    assert refused.is_error
    assert text(refused).startswith("the agent of 's-000000aa' speaks as 'code', not as 'chat'")


def test_the_server_ends_with_its_client(root: Root) -> None:
    process = subprocess.Popen(ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=PIPE)
    _, stderr = process.communicate(b"", timeout=HANG_S)
    assert (process.returncode, stderr) == (0, b"")


def test_what_is_no_message_ends_no_server(root: Root) -> None:
    lines = [b"no json", b'{"jsonrpc": "2.0"}', b"[]", b'{"a": "' + b"x" * 100_000, b"\xff\xfe"]
    process = subprocess.Popen(ARGV, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdin
    assert process.stdout
    ping = b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}'
    process.stdin.write(b"\n".join([*lines, ping, b""]))
    process.stdin.flush()
    answers = map(json.loads, process.stdout)
    assert next(answer for answer in answers if answer.get("id") == 7)["result"] == {}
    _, stderr = process.communicate(timeout=HANG_S)
    assert process.returncode == 0
    assert b"Traceback" not in stderr
