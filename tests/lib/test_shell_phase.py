from __future__ import annotations

import grp
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters.tmux import Tmux
from sm.base.errors import StateError
from sm.issues.look import phase_file
from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for
from tests.shell import bash, lines, strict
from tests.viewer import Viewer, attached

GROUP = grp.getgrgid(os.getegid())
USER = pwd.getpwuid(os.geteuid()).pw_name
PRIVATE = GROUP.gr_name == USER and not {*GROUP.gr_mem} - {USER}
"""Whether the group of what this user creates is its own, as where umask 002 is the default."""


SESSION = "dev-harb-42"


def read_phase(path: Path) -> tuple[int, str]:
    done = bash('read_phase "$1"', path)
    assert not done.stderr
    return done.returncode, done.stdout


def written(content: bytes, mode: int = 0o600) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        path.write_bytes(content)
        path.chmod(mode)

    return make


def linked(path: Path) -> None:
    path.with_name("target").write_text("PHASE:done\n")
    path.symlink_to(path.with_name("target"))


def hard_linked(path: Path) -> None:
    path.write_text("PHASE:done\n")
    path.with_name("other").hardlink_to(path)


def foreign(path: Path) -> None:
    path.write_text("PHASE:done\n")
    os.chown(path, 65534, 65534)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
CASES = [
    pytest.param(lambda path: None, "", id="missing"),
    pytest.param(written(b""), "", id="empty"),
    pytest.param(written(b"PHASE:done\n"), "PHASE:done", id="plain"),
    pytest.param(written(b" PHASE:awaiting ci\t \r\n"), "PHASE:awaitingci", id="blanks"),
    pytest.param(written(b"PHASE:failed\rReason: no\n"), "PHASE:failed", id="ended by CR"),
    pytest.param(written(b"PHASE:failed\x0bx\n"), "PHASE:failed", id="ended by VT"),
    pytest.param(written(b"PHASE:failed\x0cx\n"), "PHASE:failed", id="ended by FF"),
    pytest.param(written(b"PHASE:failed\x1cx\n"), "PHASE:failed", id="ended by FS"),
    pytest.param(written(b"PHASE:failed\xc2\x85x\n"), "PHASE:failed", id="ended by NEL"),
    pytest.param(written(b"PHASE:failed\xe2\x80\xa8x\n"), "PHASE:failed", id="ended by U+2028"),
    pytest.param(written(b"PHASE:done\x1b[2J\n"), None, id="escape"),
    pytest.param(written(b"PHASE:done\x07\n"), None, id="bell"),
    pytest.param(written(b"PHASE:\0done\n"), None, id="nul"),
    pytest.param(written(b"PHASE:done\x7f\n"), None, id="delete"),
    pytest.param(written(b"PHASE:done\xc2\x9b2J\n"), None, id="C1"),
    pytest.param(written(b"PHASE:done\x9b2J\n"), None, id="no UTF-8"),
    pytest.param(written("PHASE:\u202edone\n".encode()), None, id="bidirectional"),
    pytest.param(written(b"PHASE:done\n", 0o644), "PHASE:done", id="readable by all"),
    pytest.param(written(b"PHASE:done\n", 0o602), None, id="others may write"),
    pytest.param(
        written(b"PHASE:done\n", 0o664), "PHASE:done" if PRIVATE else None, id="group may write"
    ),
    pytest.param(written(b"PHASE:done\n", 0o602), None, id="others may write"),
    pytest.param(linked, None, id="link"),
    pytest.param(lambda path: path.symlink_to("nowhere"), None, id="dangling link"),
    pytest.param(hard_linked, None, id="hard link"),
    pytest.param(os.mkfifo, None, id="fifo"),
    pytest.param(Path.mkdir, None, id="directory"),
    pytest.param(foreign, None, id="another's", marks=AS_ROOT),
]
"""How a phase file is made, and its sentinel; None where it is not to be believed."""


@pytest.mark.parametrize(
    ("content", "phase"),
    [
        (b"PHASE:done\n", "PHASE:done"),
        (b"PHASE:failed\nReason: no tests\n", "PHASE:failed"),
        (b" PHASE:done\t \r\n", "PHASE:done"),
        (b"PHASE:awaiting_ci", "PHASE:awaiting_ci"),
        (b"\nPHASE:done\n", ""),
        (b"", ""),
        (b"$(touch pwned) `id` \"'\n", "$(touchpwned)`id`\"'"),
    ],
)
def test_sentinel_is_the_first_line_without_white_space(
    tmp_path: Path, content: bytes, phase: str
) -> None:
    file = tmp_path / "a b.phase"
    file.write_bytes(content)
    assert read_phase(file) == (0, f"{phase}\n")


def test_missing_file_is_an_empty_phase(tmp_path: Path) -> None:
    assert read_phase(tmp_path / "none") == (0, "\n")


@pytest.mark.parametrize(("case", "verdict"), CASES)
def test_shell_and_python_agree_about_every_phase_file(
    root: Root, case: Callable[[Path], object], verdict: str | None
) -> None:
    file = root.phase("harb", 7)
    case(file)
    assert by_shell(file) == verdict
    assert by_python(root) == verdict


def by_shell(file: Path) -> str | None:
    status, said = read_phase(file)
    assert status == 0 or not said
    return said.removesuffix("\n") if status == 0 else None


def by_python(root: Root) -> str | None:
    """The sentinel; None for what is refused, and for a text with more than printable ASCII."""
    try:
        write = phase_file.read(root, "harb", 7)
    except StateError:
        return None
    text = write.text if write else ""
    return text if text.isascii() and text.isprintable() else None


@pytest.mark.parametrize("byte", [b"x", b"\0"])
def test_huge_file_is_not_read_whole(tmp_path: Path, byte: bytes) -> None:
    file = tmp_path / "phase"
    file.write_bytes(byte * 10_000_000)
    assert len(read_phase(file)[1]) <= 4097


class Loop:
    """A script that runs the loop in the background, and its session in a real tmux."""

    def __init__(self, folder: Path, socket: str, root: Root) -> None:
        self.phase_file = root.phase("harb", 42)
        self.phase_file.touch()
        self.calls, self.ended = folder / "calls", folder / "ended"
        self.folder, self.socket, self.root = folder, socket, root
        self.process: subprocess.Popen[bytes] | None = None

    def tmux(self, *args: str) -> int:
        return subprocess.run(
            ["tmux", "-L", self.socket, "-f", "/dev/null", *args], check=False, capture_output=True
        ).returncode

    def session(self, *command: str) -> None:
        assert self.tmux("new-session", "-d", "-s", SESSION, *(command or ("cat",))) == 0

    @property
    def alive(self) -> bool:
        return self.tmux("has-session", "-t", f"={SESSION}") == 0

    def start(
        self, callback: str = ":", idle_timeout: str = "60", interval: str = "0.05", **env: str
    ) -> None:
        """Run the loop; `callback` is the body of a function that gets the phase as `$1`."""
        script = strict(
            f"""
            SESSION_NAME={SESSION}
            on_phase() {{
              echo "$1" >>"$CALLS"
              {callback}
            }}
            status=0
            monitor_phase_loop "$1" {idle_timeout} on_phase || status=$?
            echo "$_MONITOR_LOOP_EXIT $status" >"$ENDED.new"
            mv "$ENDED.new" "$ENDED"
            """
        )
        self.process = subprocess.Popen(
            ["bash", "-c", script, "script", str(self.phase_file)],
            env=os.environ
            | {"CALLS": str(self.calls), "ENDED": str(self.ended), "PHASE_POLL_INTERVAL": interval}
            | env,
        )

    def write(self, text: str) -> None:
        """Write as an agent does, in a later tick of the file system's clock than before."""
        before, probe = self.phase_file.stat().st_mtime_ns, self.folder / "probe"

        def is_later() -> bool:
            probe.write_text("")
            return probe.stat().st_mtime_ns > before

        wait_for(is_later, "the clock to go on")
        self.phase_file.write_text(text)

    def wait_for_calls(self, *calls: str) -> None:
        wait_for(lambda: len(lines(self.calls)) >= len(calls), f"{calls}")
        assert lines(self.calls) == list(calls)

    def end(self) -> str:
        """Wait for the end; returns the reason and the status of the loop."""
        assert self.process is not None
        self.process.wait(HANG_S)
        return self.ended.read_text().strip()


@pytest.fixture
def loop(tmp_path: Path, tmux_socket: str, root: Root) -> Loop:
    return Loop(tmp_path, tmux_socket, root)


def test_every_write_is_one_call_up_to_the_last(loop: Loop) -> None:
    loop.session()
    loop.start()
    loop.write("PHASE:awaiting_ci\n")
    loop.wait_for_calls("PHASE:awaiting_ci")
    loop.write("PHASE:awaiting_ci\n")
    loop.wait_for_calls("PHASE:awaiting_ci", "PHASE:awaiting_ci")
    loop.write("PHASE:done\n")
    assert loop.end() == "done 0"
    assert lines(loop.calls) == ["PHASE:awaiting_ci", "PHASE:awaiting_ci", "PHASE:done"]
    assert loop.alive


def test_write_of_before_the_loop_is_handled_once(loop: Loop) -> None:
    loop.session()
    loop.write("PHASE:awaiting_review\n")
    loop.start()
    loop.wait_for_calls("PHASE:awaiting_review")
    loop.write("PHASE:failed\nReason: why not\n")
    assert loop.end() == "PHASE:failed 0"
    assert lines(loop.calls) == ["PHASE:awaiting_review", "PHASE:failed"]


def test_file_replaced_by_an_older_one_is_a_new_write(loop: Loop) -> None:
    loop.session()
    loop.write("PHASE:awaiting_ci\n")
    loop.start()
    loop.wait_for_calls("PHASE:awaiting_ci")
    older = loop.folder / "older"
    older.write_text("PHASE:awaiting_ci\n")
    os.utime(older, (1, 1))
    older.rename(loop.phase_file)
    loop.wait_for_calls("PHASE:awaiting_ci", "PHASE:awaiting_ci")
    loop.write("PHASE:done\n")
    loop.end()


def test_escalation_ends_the_loop_with_the_session_alive(loop: Loop) -> None:
    loop.session()
    loop.start(callback='[[ $_MONITOR_SESSION == "$SESSION_NAME" ]] && echo same >>"$CALLS"')
    loop.write("PHASE:escalate\n")
    assert loop.end() == "PHASE:escalate 0"
    assert lines(loop.calls) == ["PHASE:escalate", "same"]
    assert loop.alive


def test_dead_session_is_a_crash(loop: Loop) -> None:
    loop.session()
    loop.start()
    loop.write("PHASE:awaiting_ci\n")
    loop.wait_for_calls("PHASE:awaiting_ci")
    loop.tmux("kill-server")
    assert loop.end() == "crashed 1"
    assert lines(loop.calls) == ["PHASE:awaiting_ci", "PHASE:crashed"]


def test_callback_may_bring_the_session_back(loop: Loop) -> None:
    loop.session()
    loop.start(
        callback="[[ $1 != PHASE:crashed ]] ||"
        ' tmux -L "$SM_TMUX_SOCKET" new-session -d -s "$SESSION_NAME" cat'
    )
    loop.write("PHASE:awaiting_ci\n")
    loop.wait_for_calls("PHASE:awaiting_ci")
    loop.tmux("kill-session", "-t", f"={SESSION}")
    loop.wait_for_calls("PHASE:awaiting_ci", "PHASE:crashed")
    loop.write("PHASE:done\n")
    assert loop.end() == "done 0"


def test_session_is_brought_back_when_its_server_has_ended(loop: Loop, tmp_path: Path) -> None:
    # A server that is ending for its next four calls: the real one is so for too short a time.
    ending = tmp_path / "ending"
    tmux = tmp_path / "bin/tmux"
    tmux.parent.mkdir()
    tmux.write_text(
        f"""#!/bin/bash
        read -r left <'{ending}' || exec {shutil.which("tmux")} "$@"
        if ((left > 1)); then echo $((left - 1)) >'{ending}'; else rm '{ending}'; fi
        echo 'server exited unexpectedly' >&2
        exit 1
        """
    )
    tmux.chmod(0o700)
    loop.session()
    loop.start(
        callback="[[ $1 != PHASE:crashed ]] ||"
        ' tmux -L "$SM_TMUX_SOCKET" new-session -d -s "$SESSION_NAME" cat',
        PATH=f"{tmux.parent}:{os.environ['PATH']}",
    )
    loop.write("PHASE:awaiting_ci\n")
    loop.wait_for_calls("PHASE:awaiting_ci")
    assert loop.process is not None
    loop.process.send_signal(signal.SIGSTOP)  # or it may look in between
    loop.tmux("kill-session", "-t", f"={SESSION}")
    ending.write_text("4\n")
    loop.process.send_signal(signal.SIGCONT)
    loop.wait_for_calls("PHASE:awaiting_ci", "PHASE:crashed")
    loop.write("PHASE:done\n")
    assert loop.end() == "done 0"


def test_session_with_a_longer_name_is_not_taken_for_it(loop: Loop) -> None:
    assert loop.tmux("new-session", "-d", "-s", f"{SESSION}1", "cat") == 0
    loop.start()
    assert loop.end() == "crashed 1"


def test_last_word_of_an_agent_that_ended_counts(loop: Loop) -> None:
    loop.write("PHASE:done\n")
    loop.start()
    assert loop.end() == "done 0"
    assert lines(loop.calls) == ["PHASE:done"]


def test_silent_session_is_killed_after_the_timeout(loop: Loop) -> None:
    loop.session()
    loop.start(idle_timeout="0.3")
    assert loop.end() == "idle_timeout 0"
    assert not lines(loop.calls)
    assert not loop.alive


def test_agent_idle_without_a_phase_is_killed_before_the_callback(loop: Loop) -> None:
    loop.session()
    loop.root.idle_marker(SESSION).touch()
    loop.start(
        callback='! tmux -L "$SM_TMUX_SOCKET" has-session -t "=$SESSION_NAME" 2>/dev/null &&'
        ' echo dead >>"$CALLS"'
    )
    assert loop.end() == "idle_prompt 0"
    assert lines(loop.calls) == ["PHASE:failed", "dead"]


def test_the_silent_session_of_a_person_who_could_type_is_left_alone_until_they_go(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop.session()
    asked = note_calls(tmp_path, monkeypatch)
    viewer = attach(loop)
    loop.start(idle_timeout="0.1")
    wait_for(lambda: lines(asked).count("list-client") > 2, "looks after the timeout")
    assert loop.alive
    viewer.close()
    assert loop.end() == "idle_timeout 0"


def test_who_only_looks_keeps_no_session(loop: Loop) -> None:
    loop.session()
    viewer = attach(loop, "-r")
    loop.start(idle_timeout="0.1")
    assert loop.end() == "idle_timeout 0"
    viewer.close()


def test_the_silent_session_that_a_person_has_typed_in_outlives_their_going_by_seconds(
    loop: Loop,
) -> None:
    loop.session()
    viewer = attach(loop)

    def has_typed() -> float:
        """Keys of the first second count as the terminal's own answers."""
        viewer.type("x")
        form = "#{session_activity} #{session_last_attached}"
        active, came = Tmux(loop.socket).command("display-message", "-p", form).split()
        return int(active) if int(active) > int(came) + 1 else 0

    typed_at = wait_for(has_typed, "a key that counts")
    viewer.close()
    loop.start(idle_timeout="0.1")
    assert loop.end() == "idle_timeout 0"
    assert time.time() >= typed_at + 5


def attach(loop: Loop, *options: str) -> Viewer:
    """Have a person look at the session."""
    viewer = Viewer(["tmux", "-L", loop.socket, "attach", *options, "-t", f"={SESSION}"])
    wait_for(lambda: attached(Tmux(loop.socket), viewer, SESSION), "the person")
    return viewer


def note_calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have each command that tmux is given noted in a file, a line each; returns it."""
    asked, real = folder / "asked", shutil.which("tmux")
    shim = folder / "shim" / "tmux"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$3" >>{asked}\nexec {real} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    return asked


def test_what_the_agent_has_not_written_is_no_sign_of_idleness(loop: Loop) -> None:
    loop.session()
    loop.root.idle_marker(SESSION).mkdir()
    loop.start(idle_timeout="0.5")
    assert loop.end() == "idle_timeout 0"


def test_agent_idle_after_a_phase_is_left_alone(loop: Loop) -> None:
    loop.session()
    loop.write("PHASE:awaiting_ci\n")
    loop.root.idle_marker(SESSION).touch()
    loop.start(idle_timeout="0.5")
    assert loop.end() == "idle_timeout 0"
    assert lines(loop.calls) == ["PHASE:awaiting_ci"]


def test_callback_can_end_the_loop(loop: Loop) -> None:
    loop.session()
    loop.start(callback="return 1")
    loop.write("PHASE:awaiting_ci\n")
    assert loop.end() == "callback 1"
    assert loop.alive


def test_variables_of_the_callback_do_not_disturb_the_loop(loop: Loop) -> None:
    loop.session()
    loop.start(
        callback="phase=x file=y status=9 interval=z session=q timeout=0 now=0 since=0 callback=no"
    )
    loop.write("PHASE:awaiting_ci\n")
    loop.wait_for_calls("PHASE:awaiting_ci")
    loop.write("PHASE:done\n")
    assert loop.end().startswith("done")


def test_refused_phase_file_is_named_and_never_taken_for_idleness(loop: Loop) -> None:
    loop.session()
    loop.root.idle_marker(SESSION).touch()
    loop.phase_file.unlink()
    loop.phase_file.symlink_to(loop.folder / "elsewhere")
    done = bash(
        f'monitor_phase_loop "$1" 0.5 : {SESSION}; echo "$_MONITOR_LOOP_EXIT"',
        loop.phase_file,
        PHASE_POLL_INTERVAL="0.02",
    )
    assert done.stdout == "idle_timeout\n"
    assert done.stderr.count("is no phase file of ours") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("abc :", "'abc' is no number of seconds"),
        ("1 nothing_of_that_name", "there is no callback"),
    ],
)
def test_unusable_arguments_are_named(root: Root, arguments: str, message: str) -> None:
    done = bash(f"SESSION_NAME=s monitor_phase_loop /none {arguments}")
    assert done.returncode == 2
    assert message in done.stderr


def test_nothing_is_left_behind(loop: Loop) -> None:
    loop.session()
    loop.phase_file.write_text("PHASE:done\n")
    before = set(loop.folder.iterdir())
    loop.start(callback="exit 7")
    assert loop.process is not None
    assert loop.process.wait(HANG_S) == 7
    assert set(loop.folder.iterdir()) - before == {loop.calls}


@pytest.mark.parametrize("make", [hard_linked, written(b"PHASE:done\n", 0o622)])
def test_loop_passes_over_a_phase_that_others_could_have_written(
    loop: Loop, make: Callable[[Path], object]
) -> None:
    make(loop.phase_file)
    loop.session()
    loop.start(idle_timeout="0.5")
    assert loop.process
    assert loop.process.wait(timeout=HANG_S) == 0
    assert lines(loop.calls) == []
    assert lines(loop.ended) == ["idle_timeout 0"]
