"""A command that is a fork of the test's process is as one that was started."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from sm.cli.root import list_verbs
from tests import forked
from tests.company import Company
from tests.forked import run_sm, start_sm
from tests.helpers import HANG_S


@pytest.mark.parametrize("args", [("--version",), ("statsu",), ("queue", "none"), ()])
def test_it_says_and_ends_as_the_program_does(tmp_path: Path, args: tuple[str, ...]) -> None:
    started = subprocess.run(
        [sys.executable, "-Im", "sm", *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    forked = run_sm(*args, env=os.environ, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


@pytest.mark.sweep
@pytest.mark.parametrize("verb", list_verbs())
def test_each_verb_starts_as_a_program_too(verb: str) -> None:
    argv = [sys.executable, "-Im", "sm", verb, "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: sm {verb} ")


def test_its_environment_and_folder_are_its_own(tmp_path: Path) -> None:
    before, here = dict(os.environ), Path.cwd()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "sm.yaml").write_text("nonsense: 1\n")
    done = run_sm("config", "check", env=os.environ | {"OTHER": "1"}, cwd=elsewhere)
    assert done.returncode == 2
    assert "unknown key 'nonsense'" in done.stderr
    assert (dict(os.environ), Path.cwd()) == (before, here)


def test_it_reads_what_it_is_given(company: Company) -> None:
    company.new("ann")
    text = "word " * 20_000
    company.sm("send", "ann", "-", stdin=text)
    assert len(company.hears("ann", "word word")) >= len(text.strip())


def test_one_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_sm("serve", "--port", "0", env=os.environ, cwd=tmp_path, timeout_s=0.2)


def test_one_that_is_left_running_says_and_ends_as_the_program_does(tmp_path: Path) -> None:
    with start_sm("serve", "--port", "0", env=os.environ, cwd=tmp_path) as server:
        assert server.stdout
        assert server.stdout.readline().startswith("listening on http://")
        server.terminate()
        assert server.communicate(timeout=HANG_S) == ("", "")
    assert server.returncode == 0


def test_what_it_is_warned_of_and_logs_is_on_its_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def complain() -> None:
        warnings.warn("a coroutine was never awaited", RuntimeWarning, stacklevel=1)
        warnings.warn("of old", DeprecationWarning, stacklevel=1)
        logging.getLogger("asyncio").warning("slow")
        logging.getLogger("asyncio").info("quick")

    monkeypatch.setattr(forked, "main", complain)
    said = run_sm(env=os.environ, cwd=tmp_path).stderr
    assert "RuntimeWarning: a coroutine was never awaited" in said
    assert said.endswith("\nslow\n")
    assert "of old" not in said
