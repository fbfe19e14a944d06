from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from sm.adapters.tmux import MissingPaneError, Tmux, TmuxError
from sm.adapters.tmux_start import SessionExistsError, reserve, start_session
from sm.base.errors import StateError, UsageError
from tests.helpers import wait_for


def shows(tmux: Tmux, pane_id: str, text: str) -> None:
    wait_for(lambda: text in tmux.capture(pane_id), f"'{text}' on the screen")


def test_without_a_server_there_are_no_panes(tmux: Tmux) -> None:
    assert tmux.panes() == {}
    assert tmux.pane("dev-a-1") is None
    tmux.kill("dev-a-1", 1)
    with pytest.raises(TmuxError):
        tmux.capture("%0")


def test_sessions_are_found_by_their_exact_names(tmux: Tmux, tmp_path: Path) -> None:
    one = start_session(tmux, "dev-a-1", tmp_path, ["sleep", "100"], mark="m1")
    ten = start_session(tmux, "dev-a-10", tmp_path, ["sleep", "100"])
    pids = {name: pane.pid for name, pane in tmux.panes().items()}
    assert pids == {"dev-a-1": one.pid, "dev-a-10": ten.pid}
    assert tmux.pane("dev-a") is None
    assert (one.mark, one.dead, one.in_mode, ten.mark) == ("m1", False, False, "")
    cmdline = Path(f"/proc/{one.pid}/cmdline")
    wait_for(lambda: cmdline.read_bytes() == b"sleep\x00100\x00", "the pane's own command")


def test_a_taken_name_is_refused_and_shown(tmux: Tmux, tmp_path: Path) -> None:
    first = start_session(tmux, "dev-a-1", tmp_path, ["sleep", "100"])
    with pytest.raises(SessionExistsError, match="'dev-a-1' exists already") as refused:
        start_session(tmux, "dev-a-1", tmp_path, ["sleep", "200"])
    there = refused.value.pane
    assert there is not None
    assert (there.id, there.pid) == (first.id, first.pid)
    assert list(tmux.panes()) == ["dev-a-1"]


def test_a_look_shows_the_pane_and_its_screen(tmux: Tmux, tmp_path: Path) -> None:
    pane = start_session(
        tmux, "dev-a-1", tmp_path, ["bash", "-c", "echo one; echo; echo two; exec cat"]
    )
    shows(tmux, pane.id, "two")
    wait_for(lambda: tmux.look(pane.id)[0].command == "cat", "its program")
    found, screen = tmux.look(pane.id)
    assert (found.id, found.pid, found.session) == (pane.id, pane.pid, "dev-a-1")
    assert screen.rstrip() == "one\n\ntwo"
    with pytest.raises(MissingPaneError):
        tmux.look("%99")


def test_a_pane_that_ends_between_two_answers_is_missing_and_no_crash(
    tmux: Tmux, tmp_path: Path
) -> None:
    pane = start_session(tmux, "dev-a-1", tmp_path, ["sleep", "100"])
    tmux.command("set-hook", "-g", "after-capture-pane", "kill-session -t =dev-a-1")
    with pytest.raises(MissingPaneError, match="ended while it was looked at"):
        tmux.look(pane.id)


def test_a_start_whose_process_has_died_is_begun_again(
    tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve(tmux, "dev-a-1", tmp_path, ("-x", "80", "-y", "24"))
    with pytest.raises(SessionExistsError):  # it may still be under way
        start_session(tmux, "dev-a-1", tmp_path, ["sleep", "100"], mark="m")
    monkeypatch.setattr("sm.adapters.tmux_start.ORPHANED_S", -1.0)
    assert start_session(tmux, "dev-a-1", tmp_path, ["sleep", "100"], mark="m").mark == "m"


def test_two_starts_at_once_make_one_session(tmux: Tmux, tmp_path: Path) -> None:
    outcomes: list[str] = []

    def start() -> None:
        try:
            outcomes.append(str(start_session(tmux, "dev-a-1", tmp_path, ["sleep", "100"]).pid))
        except SessionExistsError:
            outcomes.append("taken")

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes)[1:] == ["taken"] * 3


def test_missing_directory_and_bad_names_are_clear_errors(tmux: Tmux, tmp_path: Path) -> None:
    with pytest.raises(TmuxError, match="is not a directory"):
        start_session(tmux, "dev-a-1", tmp_path / "gone", ["true"])
    for name in ("a b", "a:b", "a.b", "", "a;b", "$1"):
        with pytest.raises(UsageError, match="cannot be a tmux session"):
            start_session(tmux, name, tmp_path, ["true"])


@pytest.mark.parametrize("odd", ["a b", "it's", 'say "x"', "#{pid} #S", "%H", "$(id)`id`", "end;"])
def test_odd_paths_and_arguments_arrive_as_they_are(tmux: Tmux, tmp_path: Path, odd: str) -> None:
    folder = tmp_path / odd
    folder.mkdir()
    log = folder / f"{odd}.log"
    script = 'pwd; printf "<%s>\\n" "$@"; sleep 100'
    pane = start_session(tmux, "odd", folder, ["bash", "-c", script, "x", odd], log=log)
    shows(tmux, pane.id, f"<{odd}>")
    assert str(folder) in tmux.capture(pane.id).replace("\n", "")
    wait_for(lambda: f"<{odd}>" in log.read_text(), "the transcript")


def test_transcript_has_the_very_first_output_and_is_private(tmux: Tmux, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    log.chmod(0o600)
    start_session(
        tmux, "t", tmp_path, ["bash", "-c", "echo first; echo second; sleep 100"], log=log
    )
    wait_for(lambda: "second" in log.read_text(), "the transcript")
    assert log.read_text().split() == ["before", "first", "second"]
    other = tmp_path / "other"
    pane = start_session(tmux, "u", tmp_path, ["cat"])
    tmux.pipe_to(pane.id, other)
    assert other.stat().st_mode & 0o777 == 0o600


def test_a_link_is_no_transcript(tmux: Tmux, tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError):
        start_session(tmux, "t", tmp_path, ["cat"], log=tmp_path / "log")
    assert tmux.panes() == {}


def test_screen_keeps_its_characters_without_a_locale(
    tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "C")
    pane = start_session(
        tmux, "t", tmp_path, ["bash", "-c", "printf '\\xe2\\x9d\\xaf ü'; sleep 100"]
    )
    shows(tmux, pane.id, "❯ ü")


def test_history_is_captured_on_request(tmux: Tmux, tmp_path: Path) -> None:
    pane = start_session(tmux, "t", tmp_path, ["bash", "-c", "seq 1 5000; sleep 100"])
    shows(tmux, pane.id, "5000")
    assert len(tmux.capture(pane.id).splitlines()) == 50
    assert tmux.capture(pane.id, history=10_000).startswith("1\n2\n")


def test_kill_with_another_pid_leaves_the_session(tmux: Tmux, tmp_path: Path) -> None:
    pane = start_session(tmux, "t", tmp_path, ["sleep", "100"])
    keep = start_session(tmux, "t2", tmp_path, ["sleep", "100"])
    tmux.kill("t", pane.pid + 1)
    tmux.kill("t", keep.pid)
    assert set(tmux.panes()) == {"t", "t2"}
    tmux.kill("t", pane.pid)
    assert set(tmux.panes()) == {"t2"}
    tmux.kill("t2", keep.pid)
    assert tmux.panes() == {}


def test_a_window_that_a_person_opens_changes_nothing(tmux: Tmux, tmp_path: Path) -> None:
    pane = start_session(tmux, "t", tmp_path, ["sleep", "100"])
    tmux.command("new-window", "-t", "=t:", "cat")
    found = tmux.pane("t")
    assert found
    assert (found.id, found.pid) == (pane.id, pane.pid)
    tmux.kill("t", pane.pid)
    assert tmux.panes() == {}


def test_a_program_cannot_pose_as_another_pane(tmux: Tmux, tmp_path: Path) -> None:
    posing = "x\n%0:1:0:0:1:mark:dev-b-1:bash"
    pane = start_session(tmux, "t", tmp_path, ["bash", "-c", f'exec -a "{posing}" sleep 100'])
    wait_for(lambda: tmux.panes()["t"].command != "bash", "the program")
    assert tmux.panes()["t"].pid == pane.pid
    assert set(tmux.panes()) == {"t"}


def test_server_knows_nothing_of_our_environment(
    tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TOKEN", "secret")
    monkeypatch.setenv("TMUX", "/nowhere,1,0")
    start_session(tmux, "t", tmp_path, ["sleep", "100"])
    known = tmux.command("show-environment", "-g")
    assert "secret" not in known
    assert f"HOME={os.environ['HOME']}" in known


def test_missing_pane_is_named(tmux: Tmux, tmp_path: Path) -> None:
    start_session(tmux, "t", tmp_path, ["sleep", "100"])
    with pytest.raises(MissingPaneError, match="%77"):
        tmux.capture("%77")


def test_attach_names_exactly_one_session(tmux: Tmux) -> None:
    assert tmux.attach_argv("t")[-2:] == ["-t", "=t"]
    assert Tmux(None).attach_argv("t")[:2] == ["tmux", "-u"]


FLAKY = """#!/bin/bash
# Says for the first calls what tmux says when its server just ends.
read -r left < "$0.left"
if ((left > 0)); then
  echo $((left - 1)) > "$0.left"
  echo "$SAYS" >&2
  exit 1
fi
PATH="${PATH#*:}" exec tmux "$@"
"""


@pytest.mark.parametrize(
    ("says", "retried"),
    [
        ("lost server", True),
        ("server exited unexpectedly", True),
        ("error connecting to /tmp/x (Connection refused)", True),
        ("error connecting to /tmp/x (Permission denied)", False),
        ("unknown option -- z", False),
    ],
)
def test_only_named_passing_failures_are_retried(
    tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, retried: bool
) -> None:
    flaky = tmp_path / "bin" / "tmux"
    flaky.parent.mkdir()
    flaky.write_text(FLAKY.replace("$SAYS", says))
    flaky.chmod(0o700)
    left = tmp_path / "bin" / "tmux.left"
    left.write_text("3\n")
    monkeypatch.setenv("PATH", f"{flaky.parent}:{os.environ['PATH']}")
    if retried:
        assert start_session(tmux, "t", tmp_path, ["sleep", "100"]).session == "t"
    else:
        with pytest.raises(TmuxError, match=re.escape(says)):
            start_session(tmux, "t", tmp_path, ["sleep", "100"])
    assert left.read_text() == ("0\n" if retried else "2\n")


def test_the_status_line_says_what_it_is_and_how_to_leave(tmux: Tmux, tmp_path: Path) -> None:
    bash = ["bash", "-c", "printf '\\033]2;an agent of any name\\007'; exec cat"]
    start_session(tmux, "dev-shop-4", tmp_path, bash, title="shop #4 100%H")
    viewer = Tmux(f"{tmux.socket}-viewer")
    try:
        attach = ["env", "-u", "TMUX", *tmux.attach_argv("dev-shop-4")]
        pane = start_session(viewer, "viewer", tmp_path, attach, size=(80, 24))
        shows(viewer, pane.id, "d leaves")
        line = viewer.capture(pane.id).splitlines()[-1]
        assert line.strip() == "shop #4 100%H · C-b d leaves"
    finally:
        viewer.command("kill-server")


def test_a_fifo_is_told_when_a_person_enters_and_leaves_copy_mode(
    tmux: Tmux, tmp_path: Path
) -> None:
    folder = tmp_path / 'it\'s a #{pane_id} "$HOME" %H'
    folder.mkdir()
    os.mkfifo(fifo := folder / "wake")
    pane = start_session(tmux, "fix-7", tmp_path, ["cat"])
    with os.fdopen(os.open(fifo, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0) as wake:
        assert not tmux.call_on_mode(pane.id, fifo)
        tmux.command("copy-mode", "-t", pane.id)
        assert wait_for(lambda: wake.read(1), "a byte")
        assert tmux.call_on_mode(pane.id, fifo)
        tmux.command("send-keys", "-t", pane.id, "-X", "cancel")
        assert wait_for(lambda: wake.read(1), "another")
    fifo.unlink()
    tmux.command("copy-mode", "-t", pane.id)
    assert tmux.look(pane.id)[0].in_mode
    assert not fifo.exists()
