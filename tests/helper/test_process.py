from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from sm.adapters import own_start
from sm.helper import process
from sm.helper.process import Helper
from sm.store import lock


class Started:
    """What was started in the place of processes."""

    def __init__(self) -> None:
        self.calls = list[tuple[tuple[str, ...], Path, dict[str, str]]]()

    def start(self, *words: str, log: Path, env: dict[str, str], **_: Any) -> None:
        self.calls.append((words, log, env))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    made = Started()
    monkeypatch.setattr(own_start, "start", made.start)
    return made


@pytest.fixture
def helper(tmp_path: Path) -> Helper:
    words = ("host", "look", "harb")
    settings = {"SM_CONFIG": "/there"}
    return Helper(words, tmp_path / "lock", tmp_path / "log", ("SLURM_CONF",), settings)


def test_a_helper_is_started_only_where_none_is_at_work(helper: Helper, started: Started) -> None:
    helper.ensure()
    assert [words for words, _, _ in started.calls] == [helper.words]
    with helper.take_place() as is_ours:
        assert is_ours
        helper.ensure()
        assert len(started.calls) == 1
        with helper.take_place() as is_another:
            assert not is_another
    helper.ensure()
    assert len(started.calls) == 2


def test_one_that_was_killed_is_started_again(helper: Helper, started: Started) -> None:
    if not (child := os.fork()):
        with helper.take_place():
            os._exit(9)
    os.waitpid(child, 0)
    helper.ensure()
    assert len(started.calls) == 1


def test_the_next_helper_waits_for_one_that_is_about_to_end(helper: Helper) -> None:
    ends = threading.Event()

    def hold() -> None:
        with lock.hold(helper.lock):
            began.set()
            ends.wait(10)

    began = threading.Event()
    holding = threading.Thread(target=hold)
    holding.start()
    assert began.wait(10)
    threading.Timer(0.2, ends.set).start()
    with helper.take_place(10) as is_ours:
        assert is_ours
    holding.join()


def test_it_has_the_variables_that_last_its_own_and_its_settings(
    helper: Helper, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    monkeypatch.setenv("SM_CONFIG", "/here")
    monkeypatch.setenv("API_TOKEN", "secret")
    helper.start()
    [(_, log, env)] = started.calls
    assert log == helper.log
    assert env["SLURM_CONF"] == "/etc/slurm.conf"
    assert env["SM_CONFIG"] == "/there"
    assert "API_TOKEN" not in env


@pytest.mark.parametrize(("size", "is_kept"), [(1, True), (process.LOG_LIMIT + 1, False)])
def test_a_log_that_is_long_begins_again(
    helper: Helper, started: Started, size: int, is_kept: bool
) -> None:
    helper.log.write_bytes(b"x" * size)
    helper.start()
    assert helper.log.exists() is is_kept
    assert len(started.calls) == 1
