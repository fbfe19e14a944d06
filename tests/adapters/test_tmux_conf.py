"""Sessions on a person's own server, with a configuration as people have it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.composer import type_once
from sm.adapters.tmux import LEAST, SIZE, Tmux
from sm.adapters.tmux_start import start_session
from sm.base.refusal import Refusal
from tests.adapters.test_tmux_options import serve_one
from tests.helpers import wait_for
from tests.viewer import Viewer, attached

CONFIGURATIONS = {
    "an option that is none": "set -g no-such-option on\n",
    "a file that is missing": "source-file ~/.tmux/missing.conf\n",
    "what many have": (
        "set -g window-size smallest\nset -g aggressive-resize on\nset -g mouse on\n"
        "set -g status-position top\nset -g base-index 1\nset -g remain-on-exit on\n"
    ),
    "no end with the session": "set -g detach-on-destroy off\n",
    "a line that fails": "run-shell 'echo oh; exit 3'\nif-shell 'false' '' 'no-such-command'\n",
}


@pytest.fixture
def own(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmux_socket: str
) -> Iterator[Tmux]:
    """The server without a name, of a person who is this test."""
    (folder := tmp_path / "t").mkdir(mode=0o700)
    monkeypatch.setenv("TMUX_TMPDIR", str(folder))
    monkeypatch.delenv("SM_TMUX_SOCKET")
    yield (tmux := Tmux(None))
    if tmux.panes():
        tmux.command("kill-server")


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_the_first_session_of_a_server_works(
    own: Tmux, sealed: Path, tmp_path: Path, kind: str
) -> None:
    (sealed / ".tmux.conf").write_text(CONFIGURATIONS[kind])
    serve_one(own, tmp_path, "dev-a-1")


def test_a_session_is_born_at_its_size_beside_a_small_client(tmux: Tmux, tmp_path: Path) -> None:
    start_session(tmux, "person", tmp_path, ["cat"])
    viewer = Viewer(tmux.attach_argv("person"), (30, 6))
    try:
        wait_for(lambda: attached(tmux, viewer, "person"), "a client")
        shell = ["bash", "-c", "stty size; exec cat"]
        pane = start_session(tmux, "dev-a-1", tmp_path, shell)
        assert pane.size == SIZE
        wait_for(lambda: "50 200" in tmux.capture(pane.id), "the size that the program sees")
        wait_for(lambda: tmux.look(pane.id)[0].size == SIZE, "the same a moment later")
    finally:
        viewer.close()


def test_a_window_that_is_too_small_gets_room_until_its_clients_change(
    tmux: Tmux, tmp_path: Path
) -> None:
    pane = start_session(tmux, "dev-a-1", tmp_path, ["cat"])

    def is_of(*size: int) -> None:
        wait_for(lambda: tmux.look(pane.id)[0].size == size, f"a pane of {size}")

    viewer = Viewer(tmux.attach_argv("dev-a-1"), (30, 7))
    try:
        is_of(30, 6)
        found = tmux.look(pane.id)[0]
        assert (found.is_cramped, found.viewers) == (True, 1)
        tmux.give_room(found)
        is_of(*LEAST)
        larger = Viewer(tmux.attach_argv("dev-a-1"), (90, 31))
        is_of(90, 30)
        larger.close()
        is_of(30, 6)
        tmux.give_room(tmux.look(pane.id)[0])
        is_of(*LEAST)
    finally:
        viewer.close()
    wait_for(lambda: tmux.look(pane.id)[0].viewers == 0, "nobody there")
    tmux.command("resize-window", "-t", pane.id, "-x", "20", "-y", "3")
    tmux.give_room(tmux.look(pane.id)[0])
    is_of(*SIZE)


@pytest.mark.parametrize("kind", ["", "what many have"])
def test_a_program_that_is_to_redraw_is_told_of_another_size_and_of_its_own(
    own: Tmux, sealed: Path, tmp_path: Path, kind: str
) -> None:
    (sealed / ".tmux.conf").write_text(CONFIGURATIONS.get(kind, ""))
    tells = "trap 'stty size' WINCH; echo ready; while :; do read -r -t 0.1 || :; done"
    pane = start_session(own, "dev-a-1", tmp_path, ["bash", "-c", tells])
    wait_for(lambda: "ready" in own.capture(pane.id), "the program")
    own.have_redrawn(pane.id)
    wait_for(lambda: "51 200\n50 200" in own.capture(pane.id), "both sizes")
    assert own.look(pane.id)[0].size == SIZE


def test_a_pane_in_a_split_window_gets_room(tmux: Tmux, tmp_path: Path) -> None:
    pane = start_session(tmux, "dev-a-1", tmp_path, ["cat"])
    tmux.command("split-window", "-t", pane.id, "-b", "-l", "90%", "cat")
    found = tmux.look(pane.id)[0]
    assert found.is_cramped
    tmux.give_room(found)
    assert not tmux.look(pane.id)[0].is_cramped


def test_what_tmux_puts_over_a_pane_is_removed_when_nobody_is_there(
    tmux: Tmux, tmp_path: Path
) -> None:
    pane = start_session(tmux, "dev-a-1", tmp_path, ["cat"])
    tmux.command("run-shell", "-t", pane.id, "echo what nobody reads")
    covered = tmux.look(pane.id)[0]
    assert (covered.in_mode, covered.is_covered) == (True, True)
    tmux.uncover(pane.id)
    assert not tmux.look(pane.id)[0].in_mode
    tmux.command("copy-mode", "-t", pane.id)
    assert not tmux.look(pane.id)[0].is_covered, "a person has opened that"


def test_a_hook_whose_fifo_is_gone_opens_nothing(tmux: Tmux, tmp_path: Path) -> None:
    os.mkfifo(fifo := tmp_path / "wake")
    pane = start_session(tmux, "dev-a-1", tmp_path, ["cat"])
    tmux.call_on_mode(pane.id, fifo)
    fifo.unlink()
    done = tmp_path / "done"
    for _ in range(2):
        tmux.command("copy-mode", "-t", pane.id)
        tmux.command("send-keys", "-t", pane.id, "-X", "cancel")
    tmux.command("run-shell", "-b", f"sleep 0.3; touch '{done}'")  # later than the hooks' shells
    wait_for(done.exists, "the hooks")
    assert not tmux.look(pane.id)[0].in_mode


def test_a_key_that_is_not_drawn_yet_keeps_a_text_from_becoming_one_line_with_it(
    tmux: Tmux, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    silent = ["bash", "-c", f"stty raw -echo; exec cat >{log}"]
    pane = start_session(tmux, "dev-a-1", tmp_path, silent)
    wait_for(lambda: tmux.look(pane.id)[0].command == "cat", "its program")
    viewer = Viewer(tmux.attach_argv("dev-a-1"))
    try:
        wait_for(lambda: attached(tmux, viewer, "dev-a-1"), "a client")
        before = tmux.look(pane.id)[0]
        wait_for(lambda: time.time() >= before.keyed_at + 1, "the next second")
        viewer.type("x")
        wait_for(lambda: log.read_text() == "x", "the key")
        assert type_once(tmux, before, "a", ["from sm"]) is Refusal.CHANGED
        assert type_once(tmux, tmux.look(pane.id)[0], "a", ["from sm"]) is None
    finally:
        viewer.close()
