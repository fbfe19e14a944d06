"""Handoffs in the hands of the real Claude Code, which has our server in its configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sm.adapters.tmux import Tmux
from sm.plugins.chat.mcp.schemas import INSTRUCTIONS, TOOLS
from sm.plugins.chat.threads.records import HandoffClient
from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests.e2e.stage import Stage, make_stage
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Request, Tool
from tests.real.client import environment, seal
from tests.real.terminal import Terminal
from tests.serving import serving

SM = (sys.executable, "-Im", "sm")
TOKEN = "t" * 32
PREFIX = "mcp__sm__"
"""What the client puts before the names of our tools."""

SEARCH = Tool("ToolSearch", {"query": "handoff", "max_results": 5})
"""At first the client tells the model the names alone (2.1.329). This call waits some seconds for
the server; then the model is told to try again."""

SHOWN = 50_000
"""Characters of a result that the client shows the model by itself; a longer one goes to a file."""


class Result(NamedTuple):
    """What the model was sent for a call: text as it came, and whether it was called an error."""

    text: str
    failed: bool

    @property
    def read(self) -> Any:
        """The structured result."""
        return json.loads(self.text)


def tool(name: str, **given: str) -> Tool:
    return Tool(PREFIX + name, given)


def results(request: Request) -> list[Result]:
    """What the calls of the conversation have ended with so far, in order."""
    blocks = (
        block
        for message in request.body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    )
    return [
        Result(content, block.get("is_error", False))
        for block in blocks
        if block.get("type") == "tool_result" and isinstance(content := block["content"], str)
    ]


def run(*argv: str, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout


def bridge(*args: str) -> Any:
    return json.loads(run(*SM, "bridge", *args, "--json"))


def install(home: Path) -> None:
    """Put our server into the client's configuration, which keeps all that was there."""
    configuration = home / ".claude.json"
    before = json.loads(configuration.read_text())
    run(*SM, "mcp", "install", "claude-code", env=os.environ | {"HOME": str(home)})
    after = json.loads(configuration.read_text())
    assert after.pop("mcpServers").keys() == {"sm"}
    assert after == before


def claude_mcp(claude: Path, home: Path, *args: str) -> str:
    """What `claude mcp` says to a person."""
    return run(str(claude), "mcp", *args, env=environment(home, "http://127.0.0.1:9"))


@dataclass
class Side:
    """A client with our server, and the person before it."""

    terminal: Terminal

    def says(self, prompt: str, *calls: Tool) -> list[Result]:
        """Type it; the model makes these calls, one after another. Returns their results."""
        terminal = self.terminal
        turns = len(terminal.events("Stop"))
        terminal.api.say(*(Reply("", tools=(call,)) for call in calls), "Done.")
        terminal.paste(prompt)
        terminal.wait_events("Stop", turns + 1)
        terminal.wait_idle()
        return results(terminal.api.main[-1])[-len(calls) :]

    def find_tools(self) -> None:
        """Have the model look for our tools until it knows them."""

        def search() -> bool:
            self.says("which tools are there?", SEARCH)
            return any(PREFIX in one["name"] for one in self.terminal.api.main[-1].body["tools"])

        wait_for(search, "our tools")


@pytest.fixture
def database(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the handoffs are: `sm mcp install` tells the clients, each with a HOME of its own."""
    path = tmp_path / "core.db"
    monkeypatch.setenv("SM_BRIDGE_DATABASE", str(path))
    return path


@pytest.fixture
def sides(
    claude: Path, tmux: Tmux, api: Api, tmp_path: Path, database: Path
) -> Iterator[tuple[Side, Side]]:
    """The chat, whose client starts our server, and the coding client, which asks one over HTTP."""
    chat, code = (Terminal(claude, tmux, api, tmp_path / side, name=side) for side in HandoffClient)
    install(chat.home)
    protected = serving(tmp_path, verb=("mcp", "--http"), env={"SM_SERVE_TOKEN": TOKEN})
    with protected as served:
        header = ("--header", f"Authorization: Bearer {TOKEN}")
        place = ("--scope", "user", "--transport", "http", "sm", served.url)
        claude_mcp(claude, code.home, "add", *place, *header)
        for terminal in (chat, code):
            terminal.start(wait=False)
        for terminal in (chat, code):
            terminal.wait_idle()
        yield Side(chat), Side(code)
        for terminal in (chat, code):
            print(terminal.screen())
            terminal.end()


def test_a_whole_thread_goes_from_client_to_client(sides: tuple[Side, Side], api: Api) -> None:
    chat, code = sides
    content = (
        "JWT, and “refresh” tokens:\n- kept as a hash — `sha256`\n- <b>one</b> use each 漢 👩‍💻"
    )
    chat.find_tools()
    [made] = chat.says("hand it over", tool("create_handoff", title="Auth", content=content))
    described_to_the_model(api.main[-1])
    ident = made.read["handoff"]["id"]
    me = {"id": ident, "as_client": "code"}

    code.find_tools()
    seen, marked, asked = code.says(
        f"look at handoff {ident}",
        tool("get_handoff", **me),
        tool("mark_handoff_read", **me),
        tool("add_to_handoff", **me, type="question", content="How long do they live?"),
    )
    described_to_the_model(api.main[-1])
    assert seen.read == made.read | {"new_entries": made.read["entries"], "new_count": 1}
    assert seen.read["entries"][0]["content"] == content
    assert marked.read["handoff"]["code_last_seen"] == seen.read["entries"][0]["seq"]

    [news] = chat.says("is there news?", tool("get_handoff", id=ident))
    assert news.read["new_entries"] == [asked.read["entry"]]
    [decided] = chat.says(
        "30 days", tool("add_to_handoff", id=ident, type="decision", content="30 days.")
    )

    told, done = code.says(
        "it is answered",
        tool("get_handoff", **me),
        tool("add_to_handoff", **me, type="done", content="They live for 30 days."),
    )
    assert told.read["new_entries"] == [decided.read["entry"]]
    thread = bridge("get", ident)
    assert thread["entries"] == [*told.read["entries"], done.read["entry"]]
    assert [(one["from_client"], one["type"]) for one in thread["entries"]] == [
        *(("chat", "context"), ("code", "question"), ("chat", "decision"), ("code", "done"))
    ]
    assert thread["new_entries"] == [done.read["entry"]]

    [closed] = chat.says("close it", tool("close_handoff", id=ident))
    after = bridge("get", ident)
    assert after["handoff"] == closed.read["handoff"]
    assert (after["handoff"]["status"], after["entries"]) == ("completed", [])
    [late] = code.says("more", tool("add_to_handoff", **me, type="progress", content="More."))
    assert late.failed
    assert "is completed" in late.text


def described_to_the_model(request: Request) -> None:
    """All five tools, as we describe them, and when to use them."""
    found = {one["name"]: one for one in request.body["tools"] if PREFIX in one["name"]}
    assert found.keys() == {PREFIX + one.name for one in TOOLS}
    for ours in TOOLS:
        theirs = found[PREFIX + ours.name]
        assert theirs["description"] == ours.description
        assert theirs["input_schema"] == ours.input_schema
    assert request.appearances(INSTRUCTIONS) == 1


def test_a_thread_that_is_longer_than_other_results_reaches_the_model_whole(
    terminal: Terminal, database: Path
) -> None:
    install(terminal.home)
    ident = bridge("create", "Auth", "JWT. " * (SHOWN // 5))["handoff"]["id"]
    terminal.start()
    side = Side(terminal)
    side.find_tools()
    [seen] = side.says("look", tool("get_handoff", id=ident, as_client="code"))
    assert seen.read == bridge("get", ident, "--as", "code")


def test_the_client_takes_what_is_installed(claude: Path, tmp_path: Path, database: Path) -> None:
    home = tmp_path / "client"
    seal(home, tmp_path)
    install(home)
    said = claude_mcp(claude, home, "get", "sm")
    assert "✔ Connected" in said
    assert f"SM_BRIDGE_DATABASE={database}" in said


@dataclass
class AtWork:
    """An issue with a handoff about it, and the client as its agent."""

    stage: Stage
    ident: str

    def sm(self, *args: str) -> Any:
        return json.loads(self.stage.sm("bridge", *args, "--json").stdout)

    def entries(self) -> list[tuple[str, str, str]]:
        found = self.sm("get", self.ident)["entries"]
        return [(one["from_client"], one["type"], one["content"]) for one in found]


@pytest.fixture
def at_work(
    claude: Path, api: Api, root: Root, tmux_socket: str, tmp_path: Path
) -> Iterator[AtWork]:
    home = tmp_path / "client"
    variables = environment(home, api.url)
    for name in ("PATH", "TERM"):
        variables.pop(name)
    agent = {"command": f"{claude} --dangerously-skip-permissions", "env": variables}
    where = str(tmp_path / "core.db")
    stage = make_stage(tmp_path, auto=False, settings={"agent": agent, "bridge_database": where})
    seal(home, stage.project.settings.worktree(1))
    stage.run(*SM, "mcp", "install", "claude-code", check=True, env={"HOME": str(home)})
    issue = str(stage.file_issue())
    about = ("--project", "harb", "--issue", issue)
    made = stage.sm("bridge", "create", "Auth", "Refresh tokens.", *about)
    yield AtWork(stage, made.stdout.strip())
    for event in journal.read(stage.project.root.journal):
        print(f"{event.at:.3f} {event.session} {name_event(event)} {describe(event)}")
    for session in stage.sessions():
        if pane := stage.project.tmux.pane(session.name):
            print(stage.project.tmux.capture(pane.id))
    stage.end()


def test_an_agent_at_work_reports_to_the_chat_and_hears_from_it_once(
    at_work: AtWork, api: Api
) -> None:
    ident = at_work.ident
    given = {"id": ident, "as_client": "code", "type": "progress", "content": "They are signed."}
    shell = f"sm bridge add {ident} question 'For how long?'"
    api.say(*(Reply("", tools=(call,)) for call in (SEARCH, tool("add_to_handoff", **given))))
    api.say(Reply("", tools=(Tool.bash(shell),)))
    at_work.stage.poll()
    said = [("code", "progress", "They are signed."), ("code", "question", "For how long?")]
    wait_for(lambda: at_work.entries()[1:] == said, "what the agent says", every_s=0.2)
    assert f"through handoff {ident}" in "\n".join(api.main[0].texts)

    at_work.sm("add", ident, "task", "Let them live for 30 days.")
    head = f"[sm] task from the chat (handoff {ident}, entry 4):"
    told = "(what the chat says)\nLet them live for 30 days."
    wait_for(lambda: api.appearances(told), "the task")
    at_work.sm("add", ident, "context", "That is all.")
    wait_for(lambda: api.appearances("That is all."), "the context")
    assert (api.appearances(head), api.appearances(told)) == (1, 1)
