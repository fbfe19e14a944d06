"""Hooks never fail, slow or disturb the agent, whatever is wrong around them."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.store.paths import Root, SessionDir
from tests.helpers import HANG_S
from tests.hooks import FILES, FOLDER, PAYLOADS, Hooks, payload

SAMPLES = {
    "SessionStart": "SessionStart_startup",
    "UserPromptSubmit": "UserPromptSubmit",
    "PostToolUse": "PostToolUse",
    "PermissionRequest": "PermissionRequest",
    "Notification": "Notification_permission_prompt",
    "PreCompact": "PreCompact_auto",
    "PostCompact": "PostCompact_manual",
    "Stop": "Stop",
    "StopFailure": "StopFailure_rate_limit",
    "SessionEnd": "SessionEnd_other",
    "statusline": "statusline_50",
}
"""One of each kind."""

WRITTEN = ("state", "events", "context", "stop", "dialog", "failure", "usage", "client")
READ = ("expect", "offered", "steer", "blocks", "delivery.lock", "agent.pid", "accepted")
QUICK_S = 5.0
"""Of a processor; a hook that waits is ended as one that hangs."""


@pytest.fixture
def hooks(root: Root) -> Hooks:
    hooks = Hooks(root).make()
    hooks.be("busy")
    return hooks


def call_all(hooks: Hooks, but: tuple[str, ...] = ()) -> None:
    """Every hook, none of which may say anything: `send` has tested the rest."""
    for kind, sample in SAMPLES.items():
        began = children_s()
        answer = hooks.call(sample)
        assert children_s() - began < QUICK_S, kind
        assert answer == "" or kind in ("statusline", *but), kind


def children_s() -> float:
    """The time of a processor that this process's children have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Nothing to do


def forks(hooks: Hooks, sample: str) -> int:
    """Page faults of the processes that a hook has started: no process has none.

    From within the hook's own bash, where the field cminflt of proc(5) counts its children.
    """
    report = hooks.root.path / "report"
    script = (
        f"trap 'read -r line </proc/self/stat; printf %s \"$line\" >{report}' EXIT;"
        f"source {FOLDER / FILES[sample.partition('_')[0]]}"
    )
    subprocess.run(
        ["bash", "-p", "-c", script],
        input=payload(sample),
        env=hooks.environment(),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return int(report.read_text().rpartition(")")[2].split()[8])


@pytest.mark.parametrize("sample", sorted(path.stem for path in PAYLOADS.iterdir()))
def test_nothing_is_started_when_there_is_nothing_to_hand_over(hooks: Hooks, sample: str) -> None:
    hooks.dir.agent_pid.write_text(f"{os.getpid()} 1\n")
    for file in (hooks.dir.offered, hooks.dir.expect, hooks.dir.steer):
        file.touch()
    for state in ("starting", "busy", "idle", "dialog"):
        hooks.be(state)
        hooks.marker.unlink(missing_ok=True)
        assert forks(hooks, sample) == 0, state


def test_the_prompt_after_a_turns_end_starts_one_to_remove_the_idle_marker(hooks: Hooks) -> None:
    """No builtin removes a file; and no other hook does."""
    for sample in SAMPLES.values():
        hooks.be("idle")
        hooks.call("Stop")
        assert hooks.marker.exists()
        assert (forks(hooks, sample) > 0) == (sample == "UserPromptSubmit")


def test_a_started_process_would_be_noticed(hooks: Hooks) -> None:
    hooks.queue("something to do")
    assert forks(hooks, "Stop") > 0
    hooks.env["SM_STATUS_LINE"] = "true"
    assert forks(hooks, "statusline_50") > 0


def test_a_large_payload_is_read_quickly_from_a_socket_too(hooks: Hooks) -> None:
    """The client hands its payloads over by a socket, which cannot be opened by a name."""
    text = 'x"\\y\n' * 60_000
    for sample, changes in (
        ("PostToolUse", {"tool_response": {"stdout": text}}),
        ("Stop_bg_shell", {"last_assistant_message": text}),
        ("UserPromptSubmit", {"prompt": text}),
    ):
        hooks.be("dialog")
        ours, theirs = socket.socketpair()
        began = children_s()
        stdin = theirs.fileno()
        with subprocess.Popen(hooks.argv(sample), stdin=stdin, env=hooks.environment()) as process:
            theirs.close()
            ours.sendall(payload(sample, **changes))
            ours.close()
            assert process.wait() == 0
        assert children_s() - began < 1
        assert hooks.state == ("waiting" if sample.startswith("Stop") else "busy")


# The state directory


def no_directory(path: Path) -> None:
    shutil.rmtree(path)


def file_for_directory(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("a file")


def link_for_directory(path: Path) -> None:
    path.rename(path.with_name("real"))
    path.symlink_to(path.with_name("real"))


def nothing_in_it(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def broken_files(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """All files of the directory, and the idle marker, replaced by what `make` makes."""

    def damage(path: Path) -> None:
        directory = SessionDir(path)
        shutil.rmtree(directory.queue)
        marker = Root(path.parents[2]).idle_marker(path.name)
        names = (*WRITTEN, *READ, "wake", "queue", "hold", "compacting")
        for each in (marker, *(path / name for name in names)):
            if each.is_dir():
                each.rmdir()
            each.unlink(missing_ok=True)
            make(each)

    return damage


def garbage(path: Path) -> None:
    path.write_bytes(b'\x00\xff\n"$(touch /tmp/x)` \\' * 100)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5_000_000)


DAMAGES = {
    "no directory": no_directory,
    "a file": file_for_directory,
    "a link": link_for_directory,
    "nothing in it": nothing_in_it,
    "folders": broken_files(Path.mkdir),
    "fifos": broken_files(os.mkfifo),
    "garbage": broken_files(garbage),
    "huge files": broken_files(huge),
    "dangling links": broken_files(lambda path: path.symlink_to("nowhere/at/all")),
    "devices": broken_files(lambda path: path.symlink_to("/dev/zero")),
    "endless links": broken_files(lambda path: path.symlink_to(path)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_state_directory_is_passed_over(
    hooks: Hooks, damage: Callable[[Path], None]
) -> None:
    damage(hooks.dir.path)
    call_all(hooks)


def test_an_unwritable_directory_is_passed_over(hooks: Hooks) -> None:
    """Also what would have been handed over: it could not be noted."""
    hooks.queue("kept")
    hooks.queue("kept", "steer")
    folders = (hooks.dir.path, hooks.dir.queue / "new", hooks.dir.queue / "cur")
    immutable = os.geteuid() == 0  # nothing else holds root off
    if immutable and not shutil.which("chattr"):
        pytest.skip("as root, needs chattr (of e2fsprogs)")
    for folder in folders:
        folder.chmod(0o500)
        if immutable and subprocess.run(["chattr", "+i", folder], capture_output=True).returncode:
            pytest.skip("as root, needs a file system that knows chattr +i")
    try:
        for env in ({}, {"POSIXLY_CORRECT": "1"}):
            hooks.env = dict(env)
            call_all(hooks)
            assert len(hooks.waiting()) == 2
    finally:
        for folder in folders:
            if immutable:
                subprocess.run(["chattr", "-i", folder], check=True)
            folder.chmod(0o700)


def limited(hooks: Hooks, sample: str) -> subprocess.CompletedProcess[bytes]:
    """A hook whose every write fails, as on a full disk."""
    script = 'ulimit -f 0; exec bash -p "$1"'
    return subprocess.run(
        ["bash", "-c", script, "bash", hooks.argv(sample)[-1]],
        input=payload(sample),
        env=hooks.environment(),
        capture_output=True,
        timeout=HANG_S,
    )


def test_a_full_disk_is_passed_over_and_no_message_is_lost(hooks: Hooks) -> None:
    ids = [hooks.queue("kept"), hooks.queue("kept", "steer")]
    for kind, sample in SAMPLES.items():
        done = limited(hooks, sample)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == b"" or kind == "statusline"
        assert hooks.waiting() == ids
        assert hooks.waiting("cur") == []


def test_the_state_survives_a_full_disk(hooks: Hooks) -> None:
    hooks.call("Stop")
    before = hooks.words
    limited(hooks, "UserPromptSubmit")
    assert hooks.words == before


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("x")])
def test_the_turn_is_over_whatever_has_the_idle_markers_name(
    hooks: Hooks, make: Callable[[Path], None]
) -> None:
    """A FIFO there was opened, and held the hook up before it had said that the turn is over."""
    make(hooks.marker)
    hooks.call("Stop")
    assert hooks.state == "idle"
    assert os.path.lexists(hooks.marker)
    assert not hooks.marker.is_file()


def test_a_fifo_without_a_reader_holds_nobody_up(hooks: Hooks) -> None:
    call_all(hooks)
    hooks.dir.wake.unlink()
    call_all(hooks)


# What the client sends


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"garbage",
        b"{}",
        b"[]",
        b'{"session_id":null}',
        b'{"session_id":"../../x"}',
        b'{"session_id":"' + b"x" * 5000 + b'"}',
        b'{"session_id":"$(touch x)","prompt_id":"`x`"}',
        b"\x00\xff\xfe" * 3000,
        b'{"session_id":"' + b"a" * 60,
    ],
)
def test_a_payload_that_is_none_is_passed_over(hooks: Hooks, data: bytes) -> None:
    hooks.be("starting", context="-", prompt="-")
    before = hooks.dir.state.read_bytes()
    for sample in SAMPLES.values():
        assert hooks.send(sample, data) == ""
    assert hooks.dir.state.read_bytes() == before
    assert not hooks.dir.events.exists()


def test_a_value_that_is_no_word_is_not_written_into_a_line(hooks: Hooks) -> None:
    hooks.call("PostToolUse", tool_name="a b\nc", prompt_id="x y\nz")
    assert hooks.events == ["PostToolUse -"]
    assert len(hooks.words) == 4


def test_a_client_that_does_not_listen_is_no_matter(hooks: Hooks) -> None:
    hooks.queue("text")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        hooks.argv("Stop"), input=payload("Stop"), stdout=write, env=hooks.environment()
    )
    os.close(write)
    assert done.returncode == 0


# Surroundings


@pytest.mark.parametrize(
    "env",
    [
        {"POSIXLY_CORRECT": "1"},
        {"SHELLOPTS": "errexit:nounset:noclobber:xtrace", "BASHOPTS": "failglob:nocasematch"},
        {"BASH_ENV": "/dev/zero", "ENV": "/dev/zero"},
        {"LC_ALL": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"},
        {"LANG": "C.UTF-8", "IFS": "0123", "GLOBIGNORE": "*", "CDPATH": "/", "TMPDIR": "/nowhere"},
        {"BASH_FUNC_printf%%": "() { echo pwned; }", "BASH_FUNC_source%%": "() { exit 7; }"},
        {"PATH": ""},
        {"PATH": "/nowhere"},
    ],
    ids=str,
)
def test_the_environment_does_not_change_what_hooks_do(hooks: Hooks, env: dict[str, str]) -> None:
    bash = shutil.which("bash")
    assert bash
    turns = {"UserPromptSubmit": "busy", "Stop": "idle", "Stop_bg_shell": "waiting"}
    for sample, after in turns.items():
        argv = [bash, *hooks.argv(sample)[1:]]
        done = subprocess.run(
            argv, input=payload(sample), capture_output=True, env=hooks.environment() | env
        )
        assert (done.returncode, done.stdout) == (0, b"")
        assert done.stderr == b"" or b"cannot change locale" in done.stderr  # bash, as it begins
        assert hooks.state == after
        assert "," not in hooks.words[1]


def test_a_session_folder_whose_name_wants_quoting_is_one(tmp_path: Path) -> None:
    path = tmp_path / "it's a $(touch x) *"
    path.mkdir()
    hooks = Hooks(Root(path)).make()
    hooks.call("SessionStart_startup")
    hooks.queue("text")
    assert "text" in hooks.call("Stop")
    assert hooks.poked("Stop") == b"\n"


def test_hooks_at_the_same_moment_leave_a_whole_state(hooks: Hooks) -> None:
    """A reader never sees half a line, nor one without an end."""
    seen: set[str] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(hooks.dir.state.read_text().partition(" ")[0])
            assert len(hooks.words) == 4

    hooks.call("PostToolUse")  # its line has the width of all later ones
    reader = threading.Thread(target=read)
    reader.start()
    names = ("PostToolUse", "PermissionRequest", "Stop", "PostToolUse")
    for _ in range(10):
        processes = [
            subprocess.Popen(hooks.argv(name), stdin=subprocess.PIPE, env=hooks.environment())
            for name in names
        ]
        for process, name in zip(processes, names, strict=True):
            process.communicate(payload(name))
    done.set()
    reader.join()
    assert seen <= {"busy", "dialog", "idle"}
    assert len(hooks.events) == 41
