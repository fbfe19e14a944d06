from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sm.adapters.agent.profiles import GENERIC
from sm.adapters.agent.screen import read
from sm.adapters.composer import forget, is_typed, press, type_once
from sm.adapters.tmux import Pane, Tmux, TmuxBusyError
from sm.adapters.tmux_start import start_session
from sm.base.errors import UsageError
from sm.base.refusal import Refusal
from tests.helpers import wait_for
from tests.terminal import END, PASTE, argv, received
from tests.viewer import Viewer, attached


@pytest.fixture
def pane(tmux: Tmux, tmp_path: Path, log: Path) -> Pane:
    return start(tmux, tmp_path, log, "composer")


def start(tmux: Tmux, folder: Path, log: Path, style: str) -> Pane:
    pane = start_session(tmux, "agent", folder, argv(folder, log, style))
    wait_for(lambda: "❯" in tmux.capture(pane.id), "the composer")
    return pane


def show(tmux: Tmux, folder: Path, text: str) -> Pane:
    """Start a program that shows the text, then is `cat`; returns its pane once it is both."""
    pane = start_session(tmux, "t", folder, ["bash", "-c", 'printf "%s" "$1"; exec cat', "x", text])
    wait_for(lambda: tmux.look(pane.id)[0].command == "cat", "the program that is no shell")
    last = text.split()[-1]
    wait_for(lambda: last in tmux.capture(pane.id), f"'{last}' on the screen")
    return tmux.look(pane.id)[0]


TEXTS = {
    "plain": "hello",
    "lines": "one\n  two\n\nthree\ttabbed",
    "quotes": 'it\'s "quoted" `id` $(id) $HOME \\ #{pane_pid} %H #S',
    "semicolon": "a ; b;",
    "option": "-l",
    "unicode": "ünïcödé ✓ 日本 👩‍👩‍👧",
    "long": "x" * 10_000,
    "long lines": "a line of text\n" * 700 + "end",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_text_arrives_as_one_message_byte_for_byte(
    tmux: Tmux, pane: Pane, log: Path, text: str
) -> None:
    assert type_once(tmux, pane, "id1", [text]) is None
    assert wait_for(lambda: received(log), "the message") == [text]
    assert tmux.command("list-buffers") == ""


def test_without_bracketed_paste_lines_are_line_feeds_and_only_the_end_is_enter(
    tmux: Tmux, tmp_path: Path, log: Path
) -> None:
    pane = start(tmux, tmp_path, log, "raw")
    assert type_once(tmux, pane, "id1", ["one\ntwo"]) is None
    assert wait_for(lambda: log.exists() and log.read_bytes(), "the text") == b"one\ntwo\r"


def test_a_cooked_terminal_gets_line_by_line(tmux: Tmux, tmp_path: Path, log: Path) -> None:
    pane = start(tmux, tmp_path, log, "cooked")
    assert type_once(tmux, pane, "id1", ["one\ntwo"]) is None
    wait_for(lambda: log.exists() and log.read_bytes() == b"one\ntwo\n", "both lines")


def test_an_id_is_typed_once_and_another_one_too(tmux: Tmux, pane: Pane, log: Path) -> None:
    assert not is_typed(tmux, pane, "a.1-x_Y")
    assert type_once(tmux, pane, "a.1-x_Y", ["first"]) is None
    assert type_once(tmux, pane, "a.1-x_Y", ["again"]) is None
    assert is_typed(tmux, pane, "a.1-x_Y")
    assert not is_typed(tmux, pane, "a.1-x_")
    assert type_once(tmux, pane, "b", ["second"]) is None
    wait_for(lambda: received(log) == ["first", "second"], "both messages")


def test_copy_mode_is_refused_and_the_message_goes_through_afterwards(
    tmux: Tmux, pane: Pane, log: Path
) -> None:
    tmux.command("copy-mode", "-t", pane.id)
    assert type_once(tmux, pane, "a", ["text"]) is Refusal.MODE
    tmux.command("send-keys", "-t", pane.id, "-X", "cancel")
    assert type_once(tmux, pane, "a", ["text"]) is None
    wait_for(lambda: received(log) == ["text"], "the message")


def test_a_pane_that_takes_no_input_is_refused(tmux: Tmux, pane: Pane) -> None:
    tmux.command("select-pane", "-d", "-t", pane.id)
    assert type_once(tmux, pane, "a", ["text"]) is Refusal.MODE
    assert not is_typed(tmux, pane, "a")


def test_a_dead_pane_is_refused_and_the_server_lives(tmux: Tmux, pane: Pane) -> None:
    tmux.command("set-option", "-w", "-t", pane.id, "remain-on-exit", "on")
    os.kill(pane.pid, signal.SIGKILL)
    wait_for(lambda: tmux.panes()["agent"].dead, "the death of the agent")
    for _ in range(8):
        assert type_once(tmux, pane, "a", ["text"]) is Refusal.GONE
    assert tmux.panes()["agent"].dead
    assert tmux.command("list-buffers") == ""


def test_another_program_in_the_pane_gets_nothing(tmux: Tmux, pane: Pane, tmp_path: Path) -> None:
    tmux.command("respawn-pane", "-k", "-t", pane.id, "cat")
    assert type_once(tmux, pane, "a", ["rm -rf x"]) is Refusal.GONE
    assert "rm" not in tmux.capture(pane.id)


def test_a_pane_or_server_that_is_gone_is_refused(tmux: Tmux, pane: Pane, tmp_path: Path) -> None:
    other = start_session(tmux, "other", tmp_path, ["cat"])
    tmux.kill("agent", pane.pid)
    assert type_once(tmux, pane, "a", ["text"]) is Refusal.GONE
    assert "text" not in tmux.capture(other.id)
    assert tmux.command("list-buffers") == ""
    tmux.command("kill-server")
    assert type_once(tmux, pane, "a", ["text"]) is Refusal.GONE
    assert not is_typed(tmux, pane, "a")


def test_a_pane_that_ends_before_the_paste_leaves_no_text_behind(
    tmux: Tmux, pane: Pane, tmp_path: Path
) -> None:
    start_session(tmux, "other", tmp_path, ["cat"])
    tmux.command("set-hook", "-g", "after-send-keys", "kill-session -t =agent")
    assert type_once(tmux, pane, "a", ["secret"], stash="C-s") is Refusal.GONE
    assert tmux.command("list-buffers") == ""


def test_an_answer_that_is_none_leaves_it_open_whether_it_was_typed(tmux: Tmux, pane: Pane) -> None:
    tmux.command("set-option", "-s", "command-alias[99]", "display-messag=show-options -qv")
    with pytest.raises(TmuxBusyError, match="cannot tell whether it was typed: tmux said ''"):
        type_once(tmux, pane, "a", ["text"])
    tmux.command("set-option", "-su", "command-alias[99]")
    assert is_typed(tmux, pane, "a")


@pytest.mark.parametrize("odd", ["#", ",", "}", "{a,b}", "$", ">>>", "[x]", ":", "(", "\\", "#("])
def test_any_prompt_can_be_looked_for(tmux: Tmux, tmp_path: Path, odd: str) -> None:
    pane = show(tmux, tmp_path, odd)
    assert type_once(tmux, pane, "a", ["x"], row="Z" + odd) is Refusal.CHANGED
    assert type_once(tmux, pane, "a", ["x"], row=odd) is None


def row(tmux: Tmux, pane: Pane) -> str:
    return read(GENERIC, tmux.look(pane.id, escapes=True)[1]).row


def test_several_chunks_are_as_many_pastes_and_one_enter(tmux: Tmux, pane: Pane, log: Path) -> None:
    chunks = ["one\n", "it's `two`; \\", "drei ✓ 👩‍👩", "x" * 700, "\nend"] * 60
    assert type_once(tmux, pane, "a", chunks) is None
    sent = b"".join(PASTE + chunk.encode() + END for chunk in chunks) + b"\r"
    wait_for(lambda: log.exists() and log.read_bytes() == sent, "all pastes")
    assert tmux.command("list-buffers") == ""


def test_a_draft_is_put_aside_and_any_keys_submit(tmux: Tmux, pane: Pane, log: Path) -> None:
    done = type_once(tmux, pane, "a", ["text"], stash="C-s", submit=("Escape", "Enter"))
    assert done is None
    sent = b"\x13" + PASTE + b"text" + END + b"\x1b\r"
    wait_for(lambda: log.exists() and log.read_bytes() == sent, "the keys")


@pytest.mark.parametrize(
    "draft",
    ["", "fix the #{pane_id}, {a} and [b] (c) $d \\ ^e", "ünï ✓ 日本 👩‍👩‍👧", "long " * 37],
    ids=["none", "odd", "unicode", "long"],
)
def test_a_composer_that_is_as_it_was_seen_is_typed_into(
    tmux: Tmux, tmp_path: Path, draft: str
) -> None:
    text = f"❯\u00a0{draft}"
    pane = show(tmux, tmp_path, text)
    seen = row(tmux, pane)
    assert seen == text.rstrip(" ")
    assert type_once(tmux, pane, "a", ["x"], row=seen + "y") is Refusal.CHANGED
    assert type_once(tmux, pane, "a", ["x"], row=seen[1:]) is Refusal.CHANGED
    assert type_once(tmux, pane, "a", ["x"], row=seen) is None


def test_a_person_who_begins_to_type_in_between_is_left_alone(tmux: Tmux, tmp_path: Path) -> None:
    pane = show(tmux, tmp_path, "❯ ")
    seen = row(tmux, pane)
    tmux.command("send-keys", "-t", pane.id, "-l", "y")
    wait_for(lambda: "❯ y" in tmux.capture(pane.id), "a key")
    assert type_once(tmux, pane, "a", ["text"], row=seen) is Refusal.CHANGED
    assert press(tmux, pane, ["Enter"], row=seen) is Refusal.CHANGED
    assert "text" not in tmux.capture(pane.id)
    assert press(tmux, pane, ["Enter"], row=row(tmux, pane)) is None
    wait_for(lambda: "\ny\n" in tmux.capture(pane.id), "its line")


def test_of_a_tall_draft_the_first_and_the_last_rows_count(tmux: Tmux, tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(20)]
    pane = show(tmux, tmp_path, "\n".join(lines) + "\n")
    changed = [*lines[:-1], "line"]
    assert type_once(tmux, pane, "a", ["x"], row="\n".join(changed)) is Refusal.CHANGED
    assert type_once(tmux, pane, "a", ["x"], row="\n".join(lines)) is None


def test_keys_are_pressed_once_for_an_id_and_never_in_copy_mode(
    tmux: Tmux, pane: Pane, log: Path
) -> None:
    tmux.command("copy-mode", "-t", pane.id)
    assert press(tmux, pane, ["Escape"], once="a") is Refusal.MODE
    tmux.command("send-keys", "-t", pane.id, "-X", "cancel")
    assert press(tmux, pane, ["Escape"], once="a") is None
    assert press(tmux, pane, ["Escape"], once="a") is None
    assert press(tmux, pane, ["C-u", "Enter"]) is None
    wait_for(lambda: log.exists() and log.read_bytes() == b"\x1b\x15\r", "the keys")


def test_what_is_no_key_is_refused(tmux: Tmux, pane: Pane) -> None:
    for key in ("", "C-s Enter", ";", "'", "#{x}", "a;b"):
        with pytest.raises(UsageError, match="cannot be a key"):
            press(tmux, pane, [key])


def test_the_version_of_the_server_is_known(tmux: Tmux, pane: Pane) -> None:
    assert (3, 2) <= tmux.version == pane.version < (9, 0)


def test_a_person_who_only_looks_keeps_no_key_from_the_agent(
    tmux: Tmux, pane: Pane, log: Path
) -> None:
    """A tmux since 3.7 refuses keys while the client that was active last is read-only."""
    viewer = Viewer([*tmux.attach_argv("agent"), "-r"])
    try:
        wait_for(lambda: attached(tmux, viewer, "agent"), "the viewer")
        assert type_once(tmux, tmux.look(pane.id)[0], "id1", ["hello"]) is None
        assert wait_for(lambda: received(log), "the message") == ["hello"]
    finally:
        viewer.close()


def test_bad_ids_are_refused(tmux: Tmux, pane: Pane) -> None:
    for name in ("", "a b", "a'b", "a;b", "#{x}", "a:b", "x" * 101):
        with pytest.raises(UsageError, match="cannot be a message id"):
            type_once(tmux, pane, name, ["text"])


TYPIST = """
import sys
from sm.adapters.composer import type_once
from sm.adapters.tmux import Tmux
tmux = Tmux(sys.argv[1])
pane = tmux.pane("agent")
for number in range(50):
    type_once(tmux, pane, f"id{number}", [f"message {number}"])
"""


def typist(tmux: Tmux) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", TYPIST, str(tmux.socket)])


def test_two_processes_type_fifty_messages_once_each(tmux: Tmux, pane: Pane, log: Path) -> None:
    both = [typist(tmux), typist(tmux)]
    assert [process.wait() for process in both] == [0, 0]
    messages = [f"message {number}" for number in range(50)]
    assert wait_for(lambda: len(received(log)) >= 50 and received(log), "all") == messages


def test_typists_killed_at_any_moment_lose_and_double_nothing(
    tmux: Tmux, pane: Pane, log: Path
) -> None:
    for goal in (3, 8, 9, 17, 26, 27, 40):
        process = typist(tmux)
        wait_for(lambda goal=goal: len(received(log)) >= goal, f"{goal} messages")  # type: ignore[misc]
        process.kill()
        process.wait()
    assert typist(tmux).wait() == 0
    messages = [f"message {number}" for number in range(50)]
    assert wait_for(lambda: len(received(log)) >= 50 and received(log), "all") == messages


def test_a_message_that_was_given_back_can_be_typed_again(
    tmux: Tmux, pane: Pane, log: Path
) -> None:
    assert type_once(tmux, pane, "id1", ["hello"]) is None
    forget(tmux, pane.id, "id1", "never-typed")
    assert not is_typed(tmux, pane, "id1")
    assert type_once(tmux, pane, "id1", ["hello"]) is None
    assert wait_for(lambda: received(log)[1:], "the message again") == ["hello"]
