"""What the agent's hooks do while its context is being replaced."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.helpers import wait_for
from tests.hooks import Hooks, context_of


@pytest.fixture
def called(tmp_path: Path) -> Path:
    """Where an `sm` that the hooks find notes how it was called."""
    program = tmp_path / "bin" / "sm"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/bash\n"
        f'printf \'%s\\n\' "$*" "$(readlink /proc/self/fd/0)" >{tmp_path}/half\n'
        f"mv {tmp_path}/half {tmp_path}/called\n"
    )
    program.chmod(0o755)
    return tmp_path / "called"


@pytest.fixture
def hooks(root: Root, called: Path) -> Hooks:
    """An agent at work, whose context is to be replaced; the message 'ours' may pass."""
    path = f"{called.parent / 'bin'}:{os.environ['PATH']}"
    hooks = Hooks(root, env={"PATH": path}).make()
    hooks.be("busy")
    hooks.dir.hold.write_text("other ours\n")
    return hooks


def test_the_turns_end_hands_nothing_over_and_starts_the_executor(
    hooks: Hooks, called: Path
) -> None:
    hooks.queue("for later")
    hooks.queue("even ours", ident="ours")
    assert hooks.call("Stop") == ""
    assert hooks.state == "idle"
    assert len(hooks.waiting()) == 2
    wait_for(called.exists, "the executor")
    assert called.read_text().splitlines() == [f"rotate {hooks.name}", "/dev/null"]


def test_without_a_rotation_nothing_is_started(hooks: Hooks, called: Path) -> None:
    hooks.dir.hold.unlink()
    hooks.queue("go on")
    assert context_of(hooks.call("Stop"), "Stop") == "go on"
    assert not called.exists()


def test_where_sm_cannot_be_found_the_turn_ends_all_the_same(hooks: Hooks, called: Path) -> None:
    (called.parent / "bin" / "sm").unlink()
    assert hooks.call("Stop") == ""
    assert hooks.state == "idle"


def test_within_the_turn_only_what_belongs_to_the_rotation_is_handed_over(hooks: Hooks) -> None:
    hooks.queue("for later", "steer", ident="theirs")
    hooks.queue("write your document", "steer", ident="ours")
    assert context_of(hooks.call("PostToolUse"), "PostToolUse") == "write your document"
    assert hooks.waiting() == ["theirs"]
    assert hooks.waiting("cur") == ["ours"]


def test_what_was_held_back_within_the_turn_is_looked_at_again(hooks: Hooks) -> None:
    hooks.queue("for later", "steer", ident="theirs")
    assert hooks.call("PostToolUse") == ""
    hooks.dir.hold.unlink()
    assert context_of(hooks.call("PostToolUse"), "PostToolUse") == "for later"


@pytest.mark.parametrize("ident", ["our", "urs", "o", "*", "other ours"])
def test_a_part_of_an_id_lets_nothing_through(hooks: Hooks, ident: str) -> None:
    hooks.queue("for later", "steer", ident="ours")
    hooks.dir.hold.write_text(f"{ident} other\n" if ident != "other ours" else "")
    assert hooks.call("PostToolUse") == ""
    assert hooks.waiting() == ["ours"]


def test_a_link_or_a_fifo_in_its_place_holds_everything_back(hooks: Hooks, tmp_path: Path) -> None:
    allowing = tmp_path / "allowing"
    allowing.write_text("ours\n")
    hooks.queue("for later", "steer", ident="ours")
    hooks.dir.hold.unlink()
    hooks.dir.hold.symlink_to(allowing)
    assert hooks.call("PostToolUse") == ""
    hooks.dir.hold.unlink()
    os.mkfifo(hooks.dir.hold)
    assert hooks.call("PostToolUse") == ""
    assert hooks.call("Stop") == ""
    assert hooks.waiting() == ["ours"]


def test_each_use_of_a_tool_wakes_the_monitor_which_looks_for_the_document(hooks: Hooks) -> None:
    hooks.call("PostToolUse")  # what it does to the state wakes it anyway
    assert hooks.poked("PostToolUse") == b"\n"
    hooks.dir.hold.unlink()
    assert hooks.poked("PostToolUse") == b""


def test_a_task_in_the_background_ends_no_rotation_s_wait(hooks: Hooks, called: Path) -> None:
    assert json.loads(hooks.call("Stop_bg_shell") or "null") is None
    assert hooks.state == "waiting"
    wait_for(called.exists, "the executor")  # which decides how long it waits
