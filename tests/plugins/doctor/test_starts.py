"""The walk through a first start: each dialog, what sm does about it, and what sm does not know."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.profile import Profile
from sm.adapters.tmux import Tmux
from sm.config.schema import AgentSettings
from sm.plugins.doctor import assumptions, subject
from sm.plugins.doctor.probe import probe
from sm.setup.finding import Finding, Level
from sm.store.paths import Root

CLIENT = r"""
import json, os, sys, tty
from pathlib import Path

tty.setraw(0)
folder = os.environ["CLAUDE_CONFIG_DIR"] if "CLAUDE_CONFIG_DIR" in os.environ else ""
with Path(sys.argv[1]).open("a") as log:
    log.write(json.dumps([folder, os.getcwd(), sorted(os.listdir())]) + "\n")
for title, *rows in json.loads(sys.argv[2]) if folder else [["done"]]:
    at = 0
    while True:
        shown = [f" {'❯' if at == number else ' '} {row}" for number, row in enumerate(rows)]
        os.write(1, "\x1b[2J\x1b[H".encode() + "\r\n".join([title, *shown]).encode())
        data = os.read(0, 65536).decode()
        if rows and data == "\x1b[B":
            at = min(at + 1, len(rows) - 1)
        elif rows and data == "\x1b[A":
            at = max(at - 1, 0)
        elif rows and data == "\r":
            break
    with Path(sys.argv[1]).open("a") as log:
        log.write(json.dumps(rows[at]) + "\n")
    if title.endswith("leaves"):
        os.write(1, b"\x1b[2J\x1b[Hgood bye")
        sys.exit()
line = "─" * 20
os.write(1, f"\x1b[2J\x1b[H{line}\r\n\x1b[39m❯\u00a0\r\n{line}\r\n".encode())
os.read(0, 65536)
"""
"""A client whose first start shows these menus, a row each, and which has no input line before."""

TRUST = ["Is it yours?", "No, exit", "Yes, I trust this folder"]
KEY = ["Detected a custom API key", "Yes", "No (recommended)"]
BARE = structs.replace(CLAUDE, hooks="", settings=(), system_prompt=())


@pytest.fixture(autouse=True)
def without_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assumptions, "SETTLED_S", 1.0)
    monkeypatch.setattr(assumptions, "DRAWN_S", 0.3)
    monkeypatch.setattr(subject, "MOVES_S", 0.3)


def walk(root: Root, folder: Path, *menus: list[str], profile: Profile = BARE) -> list[Finding]:
    (folder / "client.py").write_text(CLIENT)
    words = [sys.executable, str(folder / "client.py"), str(folder / "log"), json.dumps(menus)]
    found = probe(root, AgentSettings(command=shlex.join(words)), profile, full=False)
    return [one for one in found if one.what.startswith("a first start")]


def read_log(folder: Path) -> list[Any]:
    """What the client has noted: where each of its starts was, and what was chosen."""
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def test_each_dialog_is_told_with_what_is_done_about_it(root: Root, tmp_path: Path) -> None:
    found = walk(root, tmp_path, TRUST, KEY)
    assert [one.what for one in found] == [
        "a first start, step 1: it asks whether the directory is trusted: sm doctor foresees it, "
        "and in a session of an issue you are told, and answer once with sm attach",
        "a first start, step 2: it asks whether to use the key of its environment: sm doctor "
        "foresees it, and in a session of an issue you are told, and answer once with sm attach",
        "a first start, step 3: the input line",
    ]
    assert {one.level for one in found} == {Level.OK}
    assert read_log(tmp_path)[-2:] == ["Yes, I trust this folder", "Yes"]


def test_an_unknown_screen_is_shown_with_its_lines(root: Root, tmp_path: Path) -> None:
    _, told = walk(root, tmp_path, TRUST, ["Shall I reset it all?"])
    assert told.what == (
        "a first start, step 2: sm does not know this screen; in a session you are told of it "
        "after a minute: Shall I reset it all?"
    )
    assert told.level is Level.WARN
    assert told.advice == "see docs/PROFILES.md"


def test_a_menu_that_no_entry_names_is_not_answered(root: Root, tmp_path: Path) -> None:
    (told,) = walk(root, tmp_path, ["Shall I reset it all?", "yes", "no"])
    assert told.what.endswith(
        "sm knows this only as some dialog; in a session of an issue you are told of it: "
        "Shall I reset it all? / ❯ yes / no"
    )
    assert read_log(tmp_path)[-1][0]  # a start, and nothing chosen


def test_a_dialog_that_does_not_take_its_answer_ends_the_walk(root: Root, tmp_path: Path) -> None:
    found = walk(root, tmp_path, *[TRUST] * 12)
    assert len(found) <= 11
    assert found[-1].level is Level.WARN


def test_a_client_that_ends_at_its_start_is_told(root: Root, tmp_path: Path) -> None:
    *_, told = walk(root, tmp_path, [f"{KEY[0]}, and leaves", *KEY[1:]])
    assert told.what.startswith("a first start, step 2: it ended: ")
    assert told.what.endswith(" / good bye")
    assert told.level is Level.WARN


def test_it_has_a_configuration_and_a_worktree_that_are_thrown_away(
    root: Root, tmp_path: Path, tmux: Tmux
) -> None:
    walk(root, tmp_path, TRUST)
    (own, cwd, _), (config, worktree, files), *_ = read_log(tmp_path)
    assert (own, cwd) == ("", str(root.probe))
    assert files == [".git", ".mcp.json"]
    for path in map(Path, (config, worktree)):
        assert path.parent.name.startswith("sm-probe-")
        assert not path.parent.exists()
    assert list(root.probe.iterdir()) == []
    assert tmux.panes() == {}


def test_of_another_program_no_start_is_walked_through(root: Root, tmp_path: Path) -> None:
    assert walk(root, tmp_path, TRUST, profile=structs.replace(BARE, program="quill")) == []
    assert len(read_log(tmp_path)) == 1
