"""A turn that begins by itself in a session that rests: the prompt hook refuses and keeps it."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path

import pytest

from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.messages import follow_up, queue
from sm.messages.queue import MessageFolder
from sm.sessions import registry
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.store import journal
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.hooks import Hooks

TIMER = 'Look at the build.\nThen "go on" — \\ with 日本.'
RESTS = ("paused", "braked")


@pytest.fixture
def hooks(root: Root, tmux: Tmux, tmp_path: Path) -> Hooks:
    """The hooks of an idle agent. No tmux client is attached to its session."""
    start_session(tmux, "agent", tmp_path, ["cat"])
    asked = ("display-message", "-p", "-t", "=agent:", "#{socket_path},0,0 #{pane_id}")
    socket, pane = tmux.command(*asked).split()
    made = Hooks(root, env={"TMUX": socket, "TMUX_PANE": pane}).make()
    made.be("idle")
    return made


def rest(hooks: Hooks, how: str = "paused") -> None:
    getattr(hooks.dir, how).write_text("{}")


def submit(hooks: Hooks, text: str = TIMER) -> str:
    return hooks.call("UserPromptSubmit", prompt=text)


@pytest.mark.parametrize("how", RESTS)
def test_what_nobody_has_typed_is_refused_and_kept_once(hooks: Hooks, how: str) -> None:
    rest(hooks, how)
    for _ in range(3):
        said = json.loads(submit(hooks))
        assert said["decision"] == "block"
        assert "nothing begins by itself" in said["reason"]
    assert hooks.state == "idle"
    kept = hooks.dir.held_back.read_text().splitlines()
    assert [json.loads(line) for line in kept] == [{"prompt": TIMER}]
    submit(hooks, "Another.")
    assert len(hooks.dir.held_back.read_text().splitlines()) == 2


def test_the_monitor_is_woken(hooks: Hooks) -> None:
    rest(hooks)
    assert hooks.poked("UserPromptSubmit")


def test_a_session_that_does_not_rest_is_not_asked(hooks: Hooks) -> None:
    assert submit(hooks) == ""
    assert hooks.state == "busy"


def test_what_sm_types_itself_is_let_through(hooks: Hooks) -> None:
    rest(hooks)
    assert submit(hooks, "[sm] Task abcd is in a file: read it") == ""
    hooks.be("idle")
    hooks.dir.expect.write_text("some text\n\n\n")
    assert submit(hooks) == ""
    assert hooks.state == "busy"
    hooks.be("idle")
    hooks.dir.expect.write_text("")
    (hooks.dir.queue / "cur" / f"{1:019d}-{'a' * 8}.sequential").write_text("{}")
    assert submit(hooks) == "", "it was typed, and is submitted late"
    assert hooks.state == "busy"


def test_a_person_who_is_at_the_keys_is_let_through(
    hooks: Hooks, tmux: Tmux, tmp_path: Path
) -> None:
    rest(hooks)
    attach = f"unset TMUX; exec {shlex.join(tmux.attach_argv('agent'))}"
    start_session(tmux, "person", tmp_path, ["sh", "-c", attach])
    wait_for(lambda: tmux.command("list-clients", "-t", "=agent"), "the person")
    assert submit(hooks) == ""
    assert hooks.state == "busy"


@pytest.mark.parametrize(
    "env", [{"TMUX": ""}, {"TMUX_PANE": "%99"}, {"SM_CLIENT": "codex"}, {"SM_HOOKS": "http"}]
)
def test_where_it_cannot_be_told_or_refused_it_is_let_through(
    hooks: Hooks, env: dict[str, str]
) -> None:
    rest(hooks)
    hooks.env |= env
    assert submit(hooks) == ""
    assert not hooks.dir.held_back.exists()


def test_no_more_is_kept_than_there_is_room_for(hooks: Hooks) -> None:
    rest(hooks)
    for number in range(40):
        assert "block" in submit(hooks, f"{number} {'x' * 4000}")
    assert 60_000 < hooks.dir.held_back.stat().st_size <= 65_536
    assert "block" in submit(hooks, "y" * 200_000)


def test_it_becomes_a_message_once_although_a_pass_is_killed(root: Root, tmp_path: Path) -> None:
    record = AdHocRecord(
        name="s-0000000a",
        provider="claude",
        config=None,
        cwd=tmp_path,
        state_root=root.path,
        created_at=time.time(),
        command="claude",
    )
    ann = registry.create(root, AdHocSession(record))
    line = json.dumps({"prompt": TIMER})
    ann.dir.held_back.write_text(f"{line}\nnonsense\n")
    follow_up.take_up_held(ann)
    [waiting] = queue.list_messages(ann.dir, MessageFolder.WAITING)
    assert waiting.text == follow_up.HELD_FRAME + TIMER
    assert not ann.dir.held_back.exists()
    ann.dir.being_taken.write_text(f"{line}\n")  # a pass was killed behind the message
    at = time.time_ns() + 10**9  # not within the same tick of the clock
    os.utime(ann.dir.being_taken, ns=(at, at))
    follow_up.take_up_held(ann)
    assert len(queue.list_messages(ann.dir, MessageFolder.WAITING)) == 2, (
        "another file is another time"
    )
    ann.dir.being_taken.write_text(f"{line}\n")
    os.utime(ann.dir.being_taken, ns=(at, at))
    follow_up.take_up_held(ann)
    assert len(queue.list_messages(ann.dir, MessageFolder.WAITING)) == 2
    told = [event for event in journal.read(root.journal) if "held back" in str(event)]
    assert len(told) == 2
