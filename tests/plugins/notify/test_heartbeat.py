"""The heartbeat, by real ticks, to a real server that misbehaves."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.plugins.notify.beat import BeatRequest
from sm.plugins.notify.checks import _check_heartbeat
from sm.plugins.notify.heartbeat import call, keep, read_beaten
from sm.setup.finding import Level
from sm.store import events, journal
from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.helpers import wait_for
from tests.plugins.notify.watcher import Watcher, watch
from tests.shell import REPOSITORY

pytestmark = pytest.mark.long_lived


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    with watch() as watcher:
        yield watcher


def begin(tmp_path: Path, url: str) -> Stage:
    stage = make_stage(tmp_path, auto=False, settings={"max_sessions": 0})
    section = json.dumps({"notify": {"heartbeat_url": url}})[1:-1]
    stage.config.write_text(f"{stage.config.read_text()}\n{section}\n")
    return stage


def test_each_completed_tick_is_told_with_its_outcome(
    tmp_path: Path, root: Root, watcher: Watcher
) -> None:
    stage = begin(tmp_path, watcher.url)
    stage.poll()
    wait_for(lambda: watcher.heard, "a heartbeat")
    assert watcher.heard[0].startswith("POST /5bf66975-secret dev-poll: harb, in 0.")
    wait_for(lambda: read_beaten(root).taken_at, "what became of it")
    shutil.rmtree(stage.repository.bare)
    assert stage.poll(check=False).returncode
    wait_for(lambda: len(watcher.heard) > 1, "another one")
    assert watcher.heard[1].startswith("POST /5bf66975-secret/fail harb: ")


def test_a_dry_run_is_no_tick(tmp_path: Path, root: Root, watcher: Watcher) -> None:
    stage = begin(tmp_path, watcher.url)
    stage.sm("poll", "--dry-run")
    stage.poll()
    wait_for(lambda: watcher.heard, "a heartbeat")
    assert len(watcher.heard) == 1


@pytest.mark.parametrize("mode", ["--once", "--loop"])
def test_dev_poll_sends_it_whichever_way_it_runs(
    tmp_path: Path, root: Root, watcher: Watcher, mode: str
) -> None:
    stage = begin(tmp_path, watcher.url)
    argv = [str(REPOSITORY / "bin" / "dev-poll"), mode]
    with subprocess.Popen(argv, env=stage.environment, stdout=subprocess.PIPE) as polling:
        wait_for(lambda: watcher.heard, "a heartbeat", 60)
        polling.terminate()
        polling.communicate(timeout=60)


def test_a_service_that_does_not_answer_delays_no_tick_and_nothing_piles_up(
    tmp_path: Path, root: Root, watcher: Watcher
) -> None:
    stage, watcher.pause_s = begin(tmp_path, watcher.url), 60.0
    stage.poll()
    wait_for(lambda: watcher.heard, "a heartbeat")
    began = time.monotonic()
    for _ in range(3):
        stage.poll()
    assert time.monotonic() - began < 30, "a tick has waited"
    assert len(watcher.heard) == 1, "another one was sent meanwhile"
    wait_for(lambda: read_beaten(root).reason, "the end of the patience", 60)
    assert "ReadTimeout" in read_beaten(root).reason
    watcher.pause_s = 0.0
    stage.poll()
    wait_for(lambda: len(watcher.heard) > 1, "the next tick's")


def test_what_is_not_taken_is_noted_without_the_address(root: Root, watcher: Watcher) -> None:
    closed = BeatRequest("POST", "http://127.0.0.1:9/5bf66975-secret", b"")
    watcher.status = 500
    answers = [
        call(closed),
        call(BeatRequest("POST", watcher.url, b"")),
        call(BeatRequest("GET", "ftp://x/secret-1")),
    ]
    assert "ConnectError" in answers[0]
    assert answers[1] == "the answer was 500"
    assert "UnsupportedProtocol" in answers[2]
    assert not any("secret" in one for one in answers)
    watcher.status, watcher.answer = 200, b'{"ok": false, "msg": "not active"}'
    push = BeatRequest("GET", f"http://127.0.0.1:{watcher.port}/api/push/x", pushes=True)
    assert "not active" in call(push)
    assert _check_heartbeat(root).what.startswith("no heartbeat was sent yet")
    for _ in range(2):
        keep(root, answers[1])
    assert "(the answer was 500)" in _check_heartbeat(root).what
    told = read_beaten(root)
    assert (told.reason, told.taken_at) == ("the answer was 500", 0.0)
    assert told.since == pytest.approx(time.time(), abs=60)
    [problem] = [one for one in journal.read(root.journal) if isinstance(one, events.Problem)]
    assert problem.text == "notify.heartbeat_url: the answer was 500"
    keep(root, "")
    assert read_beaten(root).reason == ""
    assert _check_heartbeat(root).level is Level.OK
    assert read_beaten(root).taken_at == pytest.approx(time.time(), abs=60)
