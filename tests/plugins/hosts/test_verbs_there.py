"""Every verb about a session does the same for one on a node, or says what to do instead."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.cli import elsewhere
from sm.cli.invocation import ElsewhereError
from sm.cli.words import TIME_UP
from sm.issues.placements import list_placements
from sm.issues.runners import NodeAnswer
from sm.plugins.hosts.there import There
from sm.store.paths import ProjectDir, Root
from tests.helpers import REPOSITORY, wait_for
from tests.plugins.hosts.test_following import list_running
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]

SAYS = (
    ("send harb#1 hello", 0, "harb#1"),
    ("queue harb#1", 0, "hello"),
    ("queue 1 --json", 0, '"characters": 5'),
    ("wait harb#1 --timeout 60", 0, ""),
    ("wait harb#1 --for end --timeout 0.5", 124, "timed out after 0.5 s: harb#1 has not ended"),
    ("tail harb#1", 0, "❯"),
    ("logs harb 1", 0, "❯"),
    ("trace harb 1", 0, "took on the issue, which was placed here"),
    ("trace harb#1 --json", 0, '"outcome": "still at work"'),
    ("events harb#1 --since 1h", 0, "took on the issue, which was placed here"),
    ("context harb#1", 0, "harb#1"),
    ("context harb 1 --json", 0, '"name": "harb#1"'),
    ("context harb#1 --watch", 2, "--watch is for a terminal"),
    ("context enable harb#1 --warning 50", 0, "harb#1: "),
    ("context disable harb#1", 0, "harb#1: nothing is done about its context"),
    ("health harb#1", 0, "none so far"),
    ("children harb#1", 0, "no sessions have been begun here"),
    ("cycle harb#1 --dry-run", 0, "it would not begin: the profile 'generic'"),
    ("attach harb#1", 2, "attach needs a terminal: sm logs shows the terminal log"),
    ("pause harb#1", 0, "harb#1 is paused"),
    ("resume harb#1", 0, "goes on: harb#1"),
    ("recover harb 1", 0, "recovering dev-harb-1"),
    ("reply harb 1 blue", 2, "'dev-harb-1' has asked nothing"),
    ("worktree drop harb 1", 2, "end it first, by sm kill harb#1"),
    ("kill harb 1", 0, "ended dev-harb-1"),
)
"""A command line, its exit code, and what it says; one after another."""
AFTER_ITS_END = (
    ("trace harb#1", "took on the issue, which was placed here"),
    ("trace harb#1", "attempt 1"),
    ("trace dev-harb-1 --json", "which was placed here"),
    ("logs harb 1", "❯"),
)
"""The same for a session that is over there."""


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[World]:
    with living(tmp_path, auto=False) as made:
        made.stage.file_issue()
        made.stage.poll()
        wait_for(made.stage.told, "the first prompt")
        yield made


def test_each_verb_works_or_says_what_to_do_instead(world: World) -> None:
    for line, code, text in SAYS:
        done = world.stage.sm(*line.split(), check=False)
        assert done.returncode == code, (line, done.stdout, done.stderr)
        assert text in done.stdout + done.stderr, (line, done.stdout, done.stderr)
    wait_for(lambda: not list_placements(poll(world)), "the end to be known at home")
    for line, text in AFTER_ITS_END:
        done = world.stage.sm(*line.split(), check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert text in done.stdout, (line, done.stdout, done.stderr)


def poll(world: World) -> ProjectDir:
    world.stage.poll()
    return world.project.directory


def test_a_node_is_asked_to_wait_again_until_the_time_is_up(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (placement,) = list_placements(world.project.directory)
    asked, call = list[object](), There.call

    def count(there: There, argv: list[str]) -> NodeAnswer:
        asked.append(argv)
        return call(there, argv)

    monkeypatch.setattr(There, "call", count)
    monkeypatch.setattr(elsewhere, "WAIT_S", 0.1)
    there = ElsewhereError(There(world.project, placement))
    words = ["wait", "harb#1", "--for", "end", "--timeout", "1"]
    assert elsewhere.call_there(there, words) == TIME_UP
    assert len(asked) > 1
    assert capsys.readouterr().err == "sm: timed out after 1 s: harb#1 has not ended\n"


def test_events_there_are_followed(world: World, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [str(REPOSITORY / "bin" / "sm"), "events", "harb#1", "--follow", "--since", "1h"],
            stdout=file,
            stderr=file,
            env=world.stage.environment,
            cwd=world.stage.folder,
        )
    wait_for(lambda: "which was placed here" in out.read_text(), "what has happened before")
    world.stage.sm("send", "harb#1", "go on")
    wait_for(lambda: "from a person" in out.read_text(), "what happens now")
    assert not {"\r", "\x1b"} & set(out.read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0, out.read_text()
    wait_for(lambda: not list_running(world.box, "events"), "its end there")


def test_a_context_there_is_watched_in_a_terminal(world: World) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(REPOSITORY / "bin" / "sm"), "context", "harb#1", "--watch"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=world.stage.environment | {"TERM": "xterm"},
        cwd=world.stage.folder,
        start_new_session=True,
    )
    os.close(theirs)
    shown = list[bytes]()

    def read() -> None:
        while part := _read(ours):
            shown.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    wait_for(lambda: b"".join(shown).count(b"harb#1") > 1, "it to be drawn again and again")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0, shown
    reader.join(10)
    os.close(ours)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # its other end was closed
        return b""
