from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters.process import (
    CommandError,
    CommandTimeoutError,
    MissingProgramError,
    Result,
    ask,
    run,
)
from tests.helpers import wait_for

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


@both
def test_overdue_program_is_killed_with_its_children(run: Runner, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(CommandTimeoutError, match=r"was stopped after 0\.5 s"):
        run("sh", "-c", 'sleep 30 & echo $! >"$1"; wait', "sh", str(pid), timeout_s=0.5)
    wait_for(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists(), "the child's end")


@both
def test_environment_is_replaced_not_extended(run: Runner) -> None:
    assert run("env", env={"PATH": "/usr/bin:/bin", "A": "b"}).stdout.split() == [
        "PATH=/usr/bin:/bin",
        "A=b",
    ]


@both
def test_large_output_is_whole(run: Runner) -> None:
    assert len(run("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x").stdout) == 3_000_000
