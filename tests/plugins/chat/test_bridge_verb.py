"""`sm bridge` as a person and a script meet it: what it prints, refuses, follows and ends with."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp import Client as McpClient

from sm.__main__ import run
from sm.plugins.chat.mcp.schemas import TOOLS
from sm.plugins.chat.mcp.server import Tools, make_server
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import EntryType, HandoffClient
from sm.sessions import machine as machines
from sm.sessions.caller import Caller
from sm.sessions.project import Project
from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe
from tests.helpers import HANG_S, open_project, put_session, sm_yaml, wait_for

UNKNOWN = "hof_" + "a" * 21
LIMIT = 1_000_000
SCHEMAS = {tool.name: tool.output_schema or {} for tool in TOOLS}
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31mred\x1b[0m\rover\x08\x00 text"


@pytest.fixture(autouse=True)
def database(root: Root, sealed: Path) -> Path:
    return sealed / ".local" / "share" / "sm" / "core.db"


@pytest.fixture
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    path = sm_yaml(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


class Shell:
    """`sm bridge` in this very process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capsys, self.patch = capsys, patch

    def __call__(self, *args: str, stdin: bytes = b"") -> str:
        code, stdout, stderr = self.done(*args, stdin=stdin)
        assert (code, stderr) == (0, "")
        return stdout

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "--json"))

    def refused(self, *args: str, stdin: bytes = b"", code: int = 2) -> str:
        """The one line that it says of a mistake."""
        found, stdout, stderr = self.done(*args, stdin=stdin)
        assert (found, stdout) == (code, ""), stderr
        assert stderr.startswith("sm: ")
        assert stderr.count("\n") == 1
        return stderr[4:-1]

    def done(self, *args: str, stdin: bytes = b"") -> tuple[int, str, str]:
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(["bridge", *args])
        return code, *self.capsys.readouterr()


@pytest.fixture
def sm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


@pytest.fixture
def ident(sm: Shell) -> str:
    return sm("create", "Auth", "JWT, with\nrefresh tokens.", "--project", "dnd").strip()


def shown(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "AT", text)


# What is printed


def test_a_thread_is_shown_with_what_is_new_marked(sm: Shell, ident: str) -> None:
    assert sm("add", ident, "question", "7d", "or", "30d?", "--as", "code") == "added entry 2\n"
    head = f"Auth · {ident} · dnd · active\n"
    first = "1  context from chat, AT UTC\n    JWT, with\n    refresh tokens.\n"
    second = "2  question from code, AT UTC\n    7d or 30d?\n"
    assert shown(sm("get", ident)) == f"{head}\n  {first}\n* {second}"
    assert sm("read", ident) == f"read {ident}\n"
    assert shown(sm("get", ident)) == f"{head}\n  {first}\n  {second}"
    assert sm("close", ident) == f"closed {ident}\n"
    assert sm("get", ident) == f"Auth · {ident} · dnd · completed\n"


def test_json_has_the_shapes_of_the_tools(sm: Shell) -> None:
    async def tool(name: str, **arguments: object) -> Any:
        async with McpClient(make_server(Tools(machines.load_here(None), Caller()), "0")) as client:
            return (await client.call_tool(name, arguments)).structured_content

    def same(name: str, *args: str, **arguments: object) -> None:
        assert sm.json(*args) == anyio.run(lambda: tool(name, **arguments))

    made = sm.json("create", "Auth", "JWT.", "--as", "code")
    Draft202012Validator(SCHEMAS["create_handoff"]).validate(made)
    ident = made["handoff"]["id"]
    added = sm.json("add", ident, "decision", "30 days.")
    Draft202012Validator(SCHEMAS["add_to_handoff"]).validate(added)
    assert added["handoff"]["chat_last_seen"] == added["entry"]["seq"] == 2
    same("get_handoff", "get", ident, id=ident)
    same("get_handoff", "get", ident, "--as", "code", id=ident, as_client="code")
    same("mark_handoff_read", "read", ident, "--as", "code", id=ident, as_client="code")
    same("close_handoff", "close", ident, id=ident)
    same("get_handoff", "get", ident, id=ident)


def test_what_a_terminal_would_act_upon_is_shown_harmlessly(sm: Shell) -> None:
    made = sm.json("create", HOSTILE, HOSTILE.replace("\0", ""), "--project", "\x1b[31mdnd")
    ident = made["handoff"]["id"]
    sm("add", ident, "task", "-", stdin=HOSTILE.encode())
    text = sm("get", ident)
    assert text.startswith(f"red over text · {ident} · dnd · active\n")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert sm.json("get", ident)["entries"][1]["content"] == HOSTILE
    for args in ((f"\x1b[2J{UNKNOWN}",), (ident, "--as", "\x1b[2J"), (UNKNOWN, "--\x9b2J")):
        assert sm.refused("get", *args).isprintable()


def test_every_verb_has_a_line_of_help_that_is_whole(sm: Shell) -> None:
    overview = sm("--help")
    assert "..." not in overview.partition("Commands:")[2]
    for verb in ("create", "get", "add", "read", "close", "bind"):
        assert f"  {verb} " in overview
        assert f"Usage: sm bridge {verb} " in sm(verb, "--help")


# Who speaks


def test_who_speaks_is_the_chat_and_in_a_session_of_sm_it_is_code(
    sm: Shell, project: Project
) -> None:
    ident = sm("create", "t", "c").strip()
    put_session(project, 7)  # this very process stands in for its agent
    assert [entry["seq"] for entry in sm.json("get", ident)["new_entries"]] == [1]
    assert sm.json("read", ident)["handoff"]["code_last_seen"] == 1
    sm("add", ident, "progress", "Half done.")
    sm("add", ident, "done", "Done.", "--as", "code")
    said = sm.refused("add", ident, "decision", "Do as I like.", "--as", "chat")
    assert said == "the agent of 'harb #7' speaks as 'code', not as 'chat': say so, or nothing"
    thread = sm.json("get", ident)
    assert [entry["from_client"] for entry in thread["entries"]] == ["chat", "code", "code"]
    assert sm.json("create", "t", "c")["entries"][0]["from_client"] == "code"


def test_who_claims_another_session_is_refused(
    sm: Shell, ident: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_SESSION_MANAGER_ID", "dev-harb-7")
    assert "this was not started by its agent" in sm.refused("add", ident, "task", "x", code=1)


# Long content, and what is no text


def test_content_of_the_largest_size_is_read_from_standard_input(sm: Shell, ident: str) -> None:
    content = "é" * (LIMIT // 2)
    sm("add", ident, "context", "-", stdin=content.encode())
    assert sm.json("get", ident)["entries"][-1]["content"] == content
    said = sm.refused("add", ident, "context", "-", stdin=content.encode() + b"x")
    assert said == (
        "'content' has 1,000,001 bytes, 1,000,000 are allowed: put it into a file and name that, "
        "or split it"
    )
    assert sm.refused("create", "t", "-", stdin=b"x" * (LIMIT + 1)).startswith("'content' has")
    assert len(sm.json("get", ident)["entries"]) == 2


def test_content_is_kept_as_it_was_given(sm: Shell, ident: str) -> None:
    for content in ("  two\n\nparagraphs\r\n\t", "👩\u200d👧 'quoted' -- $HOME `id`"):
        sm("add", ident, "task", "-", stdin=content.encode())
        sm("add", ident, "task", "--", content)
    sm("add", ident, "task", "--", "-", "-x", "--json")
    contents = [entry["content"] for entry in sm.json("get", ident)["entries"][1:]]
    assert contents[0] == contents[1] == "  two\n\nparagraphs\r\n\t"
    assert contents[2] == contents[3] == "👩\u200d👧 'quoted' -- $HOME `id`"
    assert contents[4] == "- -x --json"


# Mistakes

MISTAKES: list[tuple[tuple[str, ...], str]] = [
    (("get", UNKNOWN), f"no handoff '{UNKNOWN}': check the id with the person"),
    (("get", UNKNOWN, "--watch"), f"no handoff '{UNKNOWN}': check the id"),
    (("add", UNKNOWN, "task", "x"), f"no handoff '{UNKNOWN}'"),
    (("read", UNKNOWN), f"no handoff '{UNKNOWN}'"),
    (("close", UNKNOWN), f"no handoff '{UNKNOWN}'"),
    (("get", "hof_1"), "no handoff 'hof_1': check the id"),
    (("close", "../core.db"), "no handoff '../core.db': check the id"),
    (("get", "hof_\u202e1"), "'hof_"),
    (("get", "hof_1\nx"), "'hof_1"),
    (
        ("get", "x" * 201),
        f"'{'x' * 60}' is not the id of a handoff: an id is short and on one line",
    ),
    (("get", ""), "'' is not the id of a handoff"),
    (("add", UNKNOWN, "answer", "x"), "unknown type 'answer': use one of context, task, progress,"),
    (("add", UNKNOWN, "task", " \n"), "'content' is empty: say what the other client is to read"),
    (("add", UNKNOWN, "task", "-"), "'content' is empty"),
    (("add", UNKNOWN, "task"), "missing argument 'CONTENT': see 'sm bridge add --help'"),
    (("add", UNKNOWN, "task", "\udcff"), "'content' is not valid Unicode"),
    (("create", " ", "c"), "'title' is empty"),
    (("create", "x" * 1001, "c"), "'title' has 1,001 bytes, 1,000 are allowed: a few words do"),
    (("create", "t", "c", "--project", "x" * 201), "'project' has 201 bytes, 200 are allowed"),
    (("create", "t", "c", "--issue", "7"), "an issue needs its project"),
    (("create", "t", "c", "--issue", "0", "--project", "harb"), "invalid value for '--issue'"),
    (("get", UNKNOWN, "--as", "desktop"), "unknown client 'desktop': 'code' stands for a coding"),
    (("create", "t", "c", "--as", ""), "unknown client ''"),
    (("bind", UNKNOWN, "harb", "7"), "no configuration knows the project 'harb': run 'sm init'"),
    (("bind", UNKNOWN, "harb", "x"), "'x' is no issue number: use a whole number from 1 up"),
    (("create", "t", "c", "--project", "h", "--issue", "7"), "no configuration knows the project"),
    (("list",), "no such command 'list'"),
]


@pytest.mark.parametrize(
    ("args", "message"), MISTAKES, ids=[" ".join(args)[:40] for args, _ in MISTAKES]
)
def test_every_mistake_is_one_line_that_says_what_to_do(
    sm: Shell, database: Path, args: tuple[str, ...], message: str
) -> None:
    assert sm.refused(*args).startswith(message)
    with open_bridge(database) as handoffs:
        assert handoffs.connection.execute("SELECT count(*) FROM handoffs").fetchone() == (0,)


def test_what_is_no_text_on_standard_input_is_refused(sm: Shell, ident: str) -> None:
    said = sm.refused("add", ident, "task", "-", stdin=b"ab\xff")
    assert said == "standard input is not UTF-8 (byte 2): convert it, or send the path"
    assert len(sm.json("get", ident)["entries"]) == 1


def test_a_completed_handoff_takes_nothing_more(sm: Shell, ident: str, project: Project) -> None:
    sm("close", ident)
    for args in (("add", ident, "done", "Late."), ("bind", ident, "harb", "7")):
        assert sm.refused(*args, code=1) == (
            f"handoff '{ident}' is completed, nothing can be added to it: create a new one to go on"
        )
    assert sm("close", ident) == f"closed {ident}\n"
    assert sm("read", ident) == f"read {ident}\n"


def test_a_handoff_is_about_an_issue_of_a_project_that_is_known(
    sm: Shell, ident: str, project: Project
) -> None:
    assert sm("bind", ident, "harb", "7") == f"{ident} is about harb #7\n"
    about = {"handoff_id": ident, "project": "harb", "issue": 8, "handed_seq": 0}
    assert sm.json("bind", ident, "harb", "8") == about
    known = f"no project 'hub' in '{project.config.source}': there is harb"
    assert sm.refused("bind", ident, "hub", "7") == known
    assert sm.refused("create", "t", "c", "--project", "hub", "--issue", "7") == known
    assert sm.refused("bind", UNKNOWN, "harb", "7").startswith(f"no handoff '{UNKNOWN}'")


def test_what_was_written_is_said_though_the_session_cannot_be_woken(
    sm: Shell, project: Project
) -> None:
    session = put_session(project, 7)
    session.dir.identity.write_text("{")
    ident = sm("create", "t", "c", "--project", "harb", "--issue", "7").strip()
    sm("add", ident, "task", "x")
    assert len(sm.json("get", ident)["entries"]) == 2
    [problem] = journal.read(project.root.journal)
    assert problem.session == "dev-harb-7"
    assert describe(problem).startswith("not woken for the chat: ")


# --watch


class Watcher:
    """`sm bridge get --watch` as a process."""

    def __init__(self, folder: Path, ident: str, *options: str) -> None:
        self.printed = folder / "printed"
        argv = [sys.executable, "-Im", "sm", "bridge", "get", ident, "--watch", *options]
        with self.printed.open("wb") as output:
            self.process = subprocess.Popen(argv, stdout=output, stderr=subprocess.PIPE, text=True)

    def lines(self, least: int) -> list[str]:
        """What it has printed, once that is as many lines."""
        wait_for(lambda: self.printed.read_text().count("\n") >= least, f"{least} lines")
        return self.printed.read_text().splitlines()

    def end(self) -> tuple[int, str]:
        """Its exit code and what it said on stderr, once it has ended by itself."""
        _, stderr = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, stderr


@contextlib.contextmanager
def watching(folder: Path, ident: str, *options: str) -> Iterator[Watcher]:
    watcher = Watcher(folder, ident, *options)
    try:
        yield watcher
    finally:
        watcher.process.kill()
        watcher.process.communicate()


def test_watching_follows_what_is_added_until_it_is_closed(
    sm: Shell, ident: str, tmp_path: Path
) -> None:
    with watching(tmp_path, ident) as watcher:
        assert watcher.lines(5)[0] == f"Auth · {ident} · dnd · active"
        sm("add", ident, "question", "7d or 30d?", "--as", "code")
        sm("add", ident, "decision", "\x1b[2J30 days.")
        assert shown("\n".join(watcher.lines(11)[6:])) == (
            "* 2  question from code, AT UTC\n    7d or 30d?\n\n"
            "  3  decision from chat, AT UTC\n    30 days."
        )
        sm("close", ident)
        assert watcher.end() == (0, "closed\n")


def test_watching_as_json_prints_a_line_for_each_entry(
    sm: Shell, ident: str, tmp_path: Path
) -> None:
    with watching(tmp_path, ident, "--json") as watcher:
        watcher.lines(1)
        sm("add", ident, "task", "two\nlines")
        found = [json.loads(line) for line in watcher.lines(2)]
        assert found == sm.json("get", ident)["entries"]
        sm("close", ident)
        assert watcher.end() == (0, "closed\n")


def test_watching_a_closed_one_ends_at_once(sm: Shell, ident: str) -> None:
    sm("close", ident)
    assert sm.done("get", ident, "--watch", "--json") == (0, "", "closed\n")


def test_ctrl_c_ends_watching_without_a_traceback(ident: str, tmp_path: Path) -> None:
    with watching(tmp_path, ident) as watcher:
        watcher.lines(5)
        watcher.process.send_signal(signal.SIGINT)
        code, stderr = watcher.end()
        assert (code, stderr.strip()) == (130, "sm: interrupted")  # behind the terminal's '^C'


def test_watching_ends_quietly_when_its_reader_is_gone_though_nothing_is_added(ident: str) -> None:
    argv = [sys.executable, "-Im", "sm", "bridge", "get", ident, "--watch"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        for _ in range(5):  # all of what is there
            assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=HANG_S) == 1
        assert process.stderr.read() == b""


def test_watching_goes_on_where_another_file_has_taken_the_place_of_the_database(
    sm: Shell, ident: str, tmp_path: Path, database: Path
) -> None:
    spare = Path(shutil.copy(database, tmp_path))
    with watching(tmp_path, ident) as watcher:
        watcher.lines(5)
        spare.replace(database)
        for file in database.parent.glob(f"{database.name}-*"):
            file.unlink()
        sm("add", ident, "task", "After it.")
        assert watcher.lines(7)[-1] == "    After it."


def test_watching_says_when_the_database_is_not_to_be_used_any_more(
    ident: str, tmp_path: Path, database: Path
) -> None:
    with open_bridge(database) as handoffs, watching(tmp_path, ident) as watcher:
        watcher.lines(5)
        handoffs.add(ident, EntryType.TASK, "x", HandoffClient.CHAT)
        watcher.lines(7)
        handoffs.connection.execute("DROP TABLE handoff_entries")
        code, stderr = watcher.end()
        assert code == 1
        assert stderr == f"sm: cannot use '{database}': no such table: handoff_entries\n"
