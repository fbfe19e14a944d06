from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sm.__main__ import run
from sm.adapters import procfs
from sm.adapters.agent.profiles import find
from sm.adapters.tmux import Tmux
from sm.config.schema import AgentSettings
from sm.plugins.doctor.probe import probe
from sm.setup.finding import Finding, Level
from sm.store.paths import Root
from tests.helpers import HANG_S, make_repository, sm_yaml, wait_for

pytestmark = pytest.mark.long_lived

EDITOR = r"""
import os, re, sys, tty
from pathlib import Path

tty.setraw(0)
with Path(sys.argv[1]).open("a") as log:
    log.write(f"{os.getpid()} {os.getcwd()} {os.environ['TMUX'].split(',')[0]}\n")
line, away = "", ""
os.write(1, b"\x1b[?2004h")
while True:
    rows = [*sys.argv[2:], "a draft is away" if away else "", f"> {line}"]
    os.write(1, b"\x1b[2J\x1b[H" + "\r\n".join(rows).encode())
    for key in re.sub(r"\x1b\[20[01]~", "", os.read(0, 65536).decode()):
        if key == "\x15":
            line = ""
        elif key == "\x13":
            line, away = away, line
        elif key == "\r" and line == "quit":
            sys.exit()
        elif key == "\r":
            line = ""
        elif key.isprintable():
            line += key
"""
"""A program with an input line: C-u erases it, C-s puts it away, 'quit' ends the program."""

PROFILE = {
    "glyph": ">",
    "erase_key": "C-u",
    "stash_key": "C-s",
    "stashed": ["^a draft is away"],
    "clear": "/new",
    "paste_characters": 40,
    "leave": ["quit"],
}


def editor(folder: Path, *rows: str) -> str:
    """The command that runs it below `rows`."""
    (folder / "editor.py").write_text(EDITOR)
    return shlex.join([sys.executable, str(folder / "editor.py"), str(folder / "log"), *rows])


def tried(root: Root, command: str, **changes: Any) -> list[Finding]:
    profile = find("mine", {"mine": PROFILE | changes})
    found = list(probe(root, AgentSettings(command=command), profile, full=False))
    assert {finding.where for finding in found} == {"mine"}
    return found


def failures(found: list[Finding]) -> list[str]:
    return [finding.what for finding in found if finding.level is not Level.OK]


def test_every_assumption_that_holds_is_told_with_what_was_measured(
    root: Root, tmp_path: Path
) -> None:
    found = tried(root, editor(tmp_path))
    assert failures(found) == []
    said = "\n".join(finding.what for finding in found)
    for beginning in (
        f"agent '{sys.executable}', profile 'mine'\n",
        "glyph '>': the composer shows after ",
        "a line: pasted, and read back after ",
        "erase_key 'C-u': empties the composer",
        "paste_characters 40: pasted, and read back after ",
        "a text in two pastes: pasted, and read back after ",
        "stash_key 'C-s': the draft is away after ",
        "stashed: the screen tells",
        "interrupt_key 'Escape': harmless when idle",
        "clear '/new': the prompt is back",
        "leave 'quit': it ends after ",
    ):
        assert beginning in said


def test_nothing_of_a_probe_is_left(root: Root, tmp_path: Path, tmux: Tmux) -> None:
    tried(root, editor(tmp_path))
    tried(root, editor(tmp_path), leave=[])  # it has to be ended
    for line in (tmp_path / "log").read_text().splitlines():
        pid, cwd, socket = line.split(" ")
        wait_for(lambda pid=pid: procfs.find(int(pid)) is None, "its end")  # type: ignore[misc]
        assert cwd == str(root.probe)
        assert "sm-probe-" in socket
        assert not Path(socket).exists()
    assert list(root.probe.iterdir()) == []
    assert {path.name for path in root.private.iterdir()} == {"probe"}
    assert not list(tmp_path.glob("sm-probe-*"))
    assert tmux.panes() == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_probe_that_is_stopped_leaves_nothing_either(
    root: Root, tmp_path: Path, number: signal.Signals
) -> None:
    make_repository(tmp_path)
    agent = {"command": editor(tmp_path), "profile": "mine"}
    path = sm_yaml(tmp_path, agent=agent, profiles={"mine": PROFILE})
    argv = [sys.executable, "-m", "sm", "--config", str(path), "doctor", "--probe"]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    log = tmp_path / "log"
    pid, _, socket = wait_for(lambda: log.read_text() if log.exists() else "", "its start").split()
    process.send_signal(number)
    assert process.wait(HANG_S) == 128 + number
    assert procfs.find(int(pid)) is None
    assert not Path(socket).exists()
    assert not list(tmp_path.glob("sm-probe-*"))


def test_a_wrong_glyph_is_told_with_what_the_screen_shows(root: Root, tmp_path: Path) -> None:
    found = tried(root, editor(tmp_path, "welcome"), glyph="❯")
    assert failures(found) == [
        "glyph '❯': no composer begins so; it shows: welcome / >",
    ]
    assert found[-1].level is Level.FAIL
    assert found[-1].advice == "set it, see docs/PROFILES.md"


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"frame": "─"}, "glyph '>', frame '─': no composer begins so; it shows: welcome / >"),
        ({"idle_colour": "38;5;1"}, "idle_colour '38;5;1', busy: it looks busy from the start"),
        ({"busy": ["welcome"]}, "idle_colour '', busy: it looks busy from the start"),
        ({"dialog": ["welcome"]}, "it asks: welcome / >"),
        ({"hooks": "claude"}, "hooks 'claude': no SessionStart after the start"),
        ({"erase_key": "C-k"}, "erase_key 'C-k': 'one line' stays"),
        ({"erase_key": ""}, "erase_key: none, so nothing more can be tried"),
        ({"stash_key": "C-o"}, "stash_key 'C-o': the draft stays"),
        ({"stash_key": "C-u"}, "stash_key 'C-u': the draft is lost"),
        ({"stashed": ["put by"]}, "stashed: nothing on the screen tells that a draft is put asi"),
        ({"interrupt_key": "x"}, "interrupt_key 'x': not harmless when idle: idle x"),
        ({"submit_keys": ["C-o"]}, "submit_keys 'C-o': '/new' stays in the input line"),
        ({"leave": ["exit"]}, "leave 'exit': does not end it"),
    ],
)
def test_an_assumption_that_does_not_hold_is_told(
    root: Root, tmp_path: Path, changes: dict[str, Any], failure: str
) -> None:
    found = failures(tried(root, editor(tmp_path, "welcome"), **changes))
    assert len(found) == 1
    assert found[0].startswith(failure)


def test_a_program_that_is_missing_or_ends_is_told(root: Root, tmp_path: Path) -> None:
    assert failures(tried(root, "no-such-agent")) == [
        "agent 'no-such-agent' is not on PATH: install it, or set 'agent.command'"
    ]
    silent = "it ended before it showed a prompt: it said nothing"
    assert failures(tried(root, "sleep 0.3")) == [silent]
    told = failures(tried(root, "sh -c 'echo not as root; sleep 0.3'"))
    assert told == [silent.replace("it said nothing", "not as root")]
    app = find("codex-app", {})
    assert failures(list(probe(root, AgentSettings(), app, full=False))) == [
        "a probe is not possible with 'codex-app': it has no terminal that sm could type into, "
        "so do it in the app itself"
    ]


def test_doctor_probes_the_agents_of_the_projects(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_repository(tmp_path)
    agent = {"command": editor(tmp_path), "profile": "mine"}
    path = sm_yaml(tmp_path, agent=agent, profiles={"mine": PROFILE})
    monkeypatch.setenv("SM_CONFIG", str(path))
    assert run(["doctor", "--probe"]) == 0
    assert "ok    mine: glyph '>': the composer shows after" in capsys.readouterr().out
    assert run(["doctor", "--probe", "--profile", "mine", "--json"]) == 0
    assert {finding["level"] for finding in json.loads(capsys.readouterr().out)} == {"ok"}
    assert run(["doctor", "--probe", "--profile", "codex-app"]) == 1
    assert "codex-app: a probe is not possible" in capsys.readouterr().out
    assert run(["doctor", "--probe", "--profile", "yours"]) == 2
    assert "no profile 'yours': there are claude" in capsys.readouterr().err
    assert run(["doctor", "--full"]) == 2
    assert "'--profile' and '--full' belong to '--probe'" in capsys.readouterr().err
