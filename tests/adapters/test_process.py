from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters import procfs
from sm.adapters.process import (
    Beginning,
    CommandError,
    CommandTimeoutError,
    MissingProgramError,
    Result,
    ask,
    read_beginning,
    run,
)
from sm.base.errors import SmError
from tests.helpers import HANG_S, Repository, wait_for

Runner = Callable[..., Result]
both = pytest.mark.parametrize("run", [run, ask])


@both
def test_output_code_and_input_are_passed_through(run: Runner) -> None:
    result = run("sh", "-c", "cat; echo oops >&2; exit 3", stdin=b"a\r\nb\xff", accept=(3,))
    assert (result.code, result.stdout, result.stderr) == (3, "a\r\nb\ufffd", "oops\n")


@both
def test_unexpected_code_says_what_was_run_and_what_it_said(run: Runner) -> None:
    with pytest.raises(CommandError, match=r"'git frobnicate' failed \(1\): .*frobnicate"):
        run("git", "frobnicate")


@both
def test_missing_program_is_named(run: Runner) -> None:
    with pytest.raises(MissingProgramError, match="'no-such-program' is not installed"):
        run("no-such-program")


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_what_cannot_be_started_is_named(tmp_path: Path, mode: int) -> None:
    program = tmp_path / "program"
    program.touch()
    program.write_text("neither a script nor a program")
    program.chmod(mode)
    with pytest.raises(SmError, match=f"cannot start '{program}': "):
        ask(str(program))


@both
def test_overdue_program_is_killed_with_its_children(run: Runner, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(CommandTimeoutError, match=r"was stopped after 0\.5 s"):
        run("sh", "-c", 'sleep 30 & echo $! >"$1"; wait', "sh", str(pid), timeout_s=0.5)
    wait_for(lambda: procfs.find(int(pid.read_text())) is None, "the child's end")


@both
def test_environment_is_replaced_not_extended(run: Runner) -> None:
    assert run("env", env={"PATH": "/usr/bin:/bin", "A": "b"}).stdout.split() == [
        "PATH=/usr/bin:/bin",
        "A=b",
    ]


@both
def test_large_output_is_whole(run: Runner) -> None:
    assert len(run("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x").stdout) == 3_000_000


@both
def test_what_a_program_leaves_behind_with_its_outputs_open_is_not_waited_for(
    run: Runner, tmp_path: Path
) -> None:
    """As a hook of git may do, to go on in the background."""
    left = tmp_path / "pid"
    script = 'sleep 100 & echo $! >"$1"; echo done; echo oops >&2'
    try:
        result = run("sh", "-c", script, "sh", str(left), stdin=b"unread", timeout_s=60)
        assert (result.code, result.stdout, result.stderr) == (0, "done\n", "oops\n")
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


def test_git_is_called_without_the_slow_library(repository: Repository) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom sm.adapters.git import Git\n"
        "Git(Path(sys.argv[1])).fetch('origin')\nprint('sh' in sys.modules)\n"
    )
    assert ask(sys.executable, "-c", code, str(repository.clone)).stdout == "False\n"


def test_a_program_that_is_killed_as_it_begins_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sh` then knows nothing of its child, and says so by a ValueError."""
    monkeypatch.setattr(os, "setsid", lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(CommandError, match=r"'true' failed \(-9\): killed as it began"):
        run("true")


def test_of_endless_output_the_beginning_is_read_and_the_program_stopped() -> None:
    found = read_beginning("yes", limit=100_000, timeout_s=HANG_S)
    assert found == Beginning(b"y\n" * 50_000, is_whole=False)


def test_a_program_that_takes_too_long_is_stopped_with_what_it_has_said(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    slow = f"echo so far; sleep 600 & echo $! >{pid}; wait"
    found = read_beginning("sh", "-c", slow, limit=100, timeout_s=0.5)
    assert found == Beginning(b"so far\n", is_whole=False, is_late=True)
    wait_for(lambda: procfs.find(int(pid.read_text())) is None, "the end of its child")


def test_all_of_a_short_output_is_its_beginning() -> None:
    assert read_beginning("echo", "x", limit=2, timeout_s=HANG_S) == Beginning(
        b"x\n", is_whole=True
    )
    with pytest.raises(CommandError, match="no such thing"):
        read_beginning("sh", "-c", "echo no such thing >&2; exit 3", limit=9, timeout_s=HANG_S)
    with pytest.raises(MissingProgramError):
        read_beginning("no-such-program", limit=9, timeout_s=HANG_S)


SPAWN = """
import os
from pathlib import Path
from sm.adapters.process import spawn
print(spawn("sleep", "60", log=Path("log"), env={"PATH": os.defpath}).pid)
"""


def test_python_does_not_complain_of_what_is_left_running(tmp_path: Path) -> None:
    """Each worker of a test run ended with that, about the last monitor that it had started."""
    found = ask(sys.executable, "-IW", "error", "-c", SPAWN, cwd=tmp_path)
    os.kill(int(found.stdout), signal.SIGTERM)
    assert found.stderr == ""


def test_a_program_that_says_nothing_is_waited_for_no_longer_than_for_its_first_word() -> None:
    with pytest.raises(CommandTimeoutError, match=r"said nothing for 0\.2 s"):
        ask("sleep", "60", timeout_s=50.0, silent_s=0.2)
    script = "echo here; cat >/dev/null; sleep 0.5; echo done"
    assert ask("sh", "-c", script, stdin=b"x", silent_s=20.0).stdout == "here\ndone\n"


def test_login_in_an_address_is_not_in_the_message() -> None:
    said = "echo cannot reach https://ada:hunter22@host/x >&2; exit 3"
    with pytest.raises(CommandError) as error:
        ask("sh", "-c", said, "https://ada:hunter22@host/x")
    assert "hunter22" not in error.value.message
    assert "(3): cannot reach https://[redacted]@host/x" in error.value.message
