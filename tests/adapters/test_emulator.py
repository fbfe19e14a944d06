"""A terminal that only draws: nothing of it outlives who has started it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sm.adapters import procfs
from sm.adapters.emulator import Emulator, find_left_behind, show
from sm.base.clock import Deadline
from sm.base.errors import SmError
from tests.helpers import wait_for

DIES = """
import os, signal, sys, time
from sm.adapters import emulator
from sm.base.clock import Deadline
if sys.argv[1] == "starting":
    start = emulator.ask
    def ask(*args, **kwargs):
        start(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)
    emulator.ask = ask
with emulator.Emulator((80, 24), Deadline(60)) as terminal:
    terminal.draw(b"drawn")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files belong."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("when", ["starting", "drawing"])
def test_a_terminal_ends_with_the_process_that_was_killed(when: str, folder: Path) -> None:
    own = os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run([sys.executable, "-Ic", DIES, when], env=own, check=False)
    assert done.returncode == -9
    mark = f"TMPDIR={folder}".encode()
    wait_for(lambda: not procfs.find_with_variable(mark), "the end of tmux")
    wait_for(lambda: not list(folder.iterdir()), "the end of its folder")


def test_what_was_drawn_is_shown_and_nothing_stays(folder: Path) -> None:
    before = open_files()
    assert show(b"one\r\ntwo") == ["one", "two"]
    assert open_files() == before
    assert not list(folder.iterdir())


def test_a_terminal_that_cannot_be_started_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    before = open_files()
    with pytest.raises(SmError):
        Emulator((80, 24), Deadline(60)).__enter__()
    assert open_files() == before
    assert not list(folder.iterdir())


SCREEN = ["one", "two", "three", "", "four", "five", "- busy"]


@pytest.mark.parametrize(
    ("after", "left"),
    [
        (SCREEN, []),
        ([*SCREEN[:-1], "/ busy"], []),
        (["three", "", "four", "five", "six", "seven", "| busy"], ["one", "two"]),
        (["other", "words", "", "", "", "", "- busy"], SCREEN),
        ([], SCREEN),
        ([""] * 7, SCREEN),
    ],
    ids=["unchanged", "spinner", "moved up", "replaced", "gone", "cleared"],
)
def test_what_left_the_screen(after: list[str], left: list[str]) -> None:
    assert find_left_behind(SCREEN, after) == left


def test_an_empty_screen_leaves_nothing() -> None:
    assert find_left_behind([], SCREEN) == []
    assert find_left_behind(["", ""], ["one", "two"]) == []


def test_a_short_text_that_goes_on_is_not_told_twice() -> None:
    assert find_left_behind(["one"], ["one", "two"]) == []
    assert find_left_behind(["one", "two"], ["one", "two", "three"]) == []


def test_turns_that_look_alike_are_told_apart() -> None:
    def turn(number: int) -> list[str]:
        return [f"> turn {number}", *(f"row {row}" for row in range(6)), ""]

    before = [*turn(2), *turn(3), *turn(4)[:2], "> "]
    after = [*turn(3), *turn(4), "", "* done", "> "]
    assert find_left_behind(before, after) == turn(2)


def test_a_picture_that_changes_at_the_top_moves_nothing() -> None:
    assert find_left_behind(["logo 1", *SCREEN], ["logo 2", *SCREEN]) == []
