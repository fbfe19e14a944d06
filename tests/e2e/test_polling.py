"""`dev-poll --loop` takes work up as it comes, and tells what happens; `--once` for cron."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sm.issues.look import wishes
from sm.sessions import registry
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import REPOSITORY, Stage
from tests.e2e.test_journeys import BY_SM
from tests.helpers import wait_for

RARELY: dict[str, object] = {"poll_interval": "1h"}
"""So that no tick comes of itself while a test lasts."""


@contextlib.contextmanager
def looping(stage: Stage) -> Iterator[Path]:
    """A `dev-poll --loop` that has ticked once; yields the file of what it says."""
    said = stage.folder / "loop.log"
    with said.open("w") as out:
        process = subprocess.Popen(
            ["bash", str(REPOSITORY / "bin" / "dev-poll"), "--loop"],
            env=os.environ | {"SM_CONFIG": str(stage.config), "SM_PYTHON": sys.executable},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        wait_for(stage.project.directory.due.exists, "the first tick")
        yield said
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def test_loop_takes_a_new_issue_up_at_once(stage_of: MakeStage) -> None:
    stage = stage_of(settings=RARELY)
    with looping(stage) as said:
        issue = stage.file_issue()
        wait_for(lambda: "pick up #1" in said.read_text(), "the issue to be taken up")
        assert [session.issue for session in stage.sessions()] == [issue]


def test_a_loop_with_other_hosts_is_woken_by_a_wish_and_leaves_no_bell(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(settings=RARELY | {"runner": "ssh"})
    root, taken = stage.project.root, partial(stage.project.directory.snapshot.stat)
    with looping(stage):
        wait_for(lambda: list_heard(root.bells), "the loop to hear")
        before = taken().st_mtime_ns
        wishes.note(root, "harb")
        wait_for(lambda: taken().st_mtime_ns > before, "another look")
        [bell] = list_heard(root.bells)
        assert not count_waiting(bell), "it was read"
    assert not list(root.bells.iterdir())


def list_heard(folder: Path) -> list[Path]:
    """The FIFOs there that somebody has open."""
    found = []
    for path in folder.iterdir() if folder.exists() else ():
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            found.append(path)
    return found


def count_waiting(fifo: Path) -> int:
    """How many bytes nobody has read yet."""
    opened = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        return int.from_bytes(fcntl.ioctl(opened, termios.FIONREAD, bytes(4)), sys.byteorder)
    finally:
        os.close(opened)


def test_loop_takes_an_issue_up_that_was_written_by_hand(stage_of: MakeStage) -> None:
    stage = stage_of(settings=RARELY)
    with looping(stage) as said:
        text = "---\ntitle: By hand\nstate: open\nlabels: [backlog]\nauthor: ada\n---\nPlease.\n"
        (stage.folder / "forge" / "issues" / "0001.md").write_text(text)
        wait_for(lambda: "pick up #1 By hand" in said.read_text(), "the issue to be taken up")


def test_loop_fills_a_slot_as_soon_as_it_is_free_and_tells_what_happens(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(auto=True, settings=BY_SM | RARELY | {"max_sessions": 1})
    first, second = stage.file_issue("First"), stage.file_issue("Second")
    with looping(stage) as said:
        wait_for(lambda: stage.is_over(second), "both to be merged")
        wait_for(lambda: "#2 merged" in said.read_text(), "the news")
    lines = [line.split(" ", 1)[1] for line in said.read_text().splitlines()]
    told = [line for line in lines if f"#{first}" in line]
    assert told == [
        f"harb: pick up #{first} First",
        f"harb: #{first} pull request #3 opened",
        f"harb: #{first} CI passed",
        f"harb: #{first} review: approved, sm merges",
        f"harb: #{first} merged; in your clone: git pull origin main",
    ]


def test_loop_tells_of_failed_ci_questions_and_failures(stage_of: MakeStage) -> None:
    stage = stage_of(settings=RARELY | {"ci": {"command": "false", "poll": "1s"}})
    with looping(stage) as said:
        issue = stage.file_issue()
        wait_for(lambda: "pick up" in said.read_text(), "the issue to be taken up")
        stage.push_work(issue)
        stage.write_phase(issue, "PHASE:awaiting_ci")
        wait_for(lambda: "#1 CI failed, its agent is told" in said.read_text(), "the CI result")
        stage.write_phase(issue, "PHASE:escalate\nwhich one?")
        asks = "#1 needs you: The agent asks for a person (which one?)"
        wait_for(lambda: asks in said.read_text(), "the question")
        stage.write_phase(issue, "PHASE:failed\nno idea")
        ended = "#1 needs you: The issue is blocked: the agent gave up (no idea)\n"
        wait_for(lambda: ended in said.read_text(), "the failure")


def test_loop_tells_what_happens_while_a_tick_is_at_work(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    slow = f"touch {begun}; until test -e {go_on}; do sleep 0.1; done"
    setup = f"case $PWD in *2) {slow};; esac"
    stage = stage_of(settings=RARELY | {"worktree": {"setup": setup, "timeout": "5m"}})
    first = stage.file_issue()
    with looping(stage) as said:
        wait_for(lambda: f"pick up #{first}" in said.read_text(), "the first to be taken up")
        second = stage.file_issue()
        wait_for(begun.exists, "a tick that lasts")
        stage.push_work(first)
        stage.write_phase(first, "PHASE:awaiting_review")
        waits = f"#{first} needs you: The pull request waits for a review (#3)\n"
        wait_for(lambda: waits in said.read_text(), "the review that waits")
        assert "\n         sm review harb#3 --approve\n" in said.read_text()
        assert f"pick up #{second}" not in said.read_text()
        go_on.touch()
        wait_for(lambda: f"pick up #{second}" in said.read_text(), "the second to be taken up")
    assert said.read_text().count("needs you") == 1


def test_once_fails_where_an_issue_cannot_be_started(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"agent": {"command": "/nowhere/agent"}})
    issue = stage.file_issue()
    done = stage.poll(check=False)
    assert f"cannot pick up #{issue}" in done.stdout
    assert done.returncode == 1, done.stderr


def test_loop_says_once_what_it_tries_at_each_tick(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"agent": {"command": "/nowhere/agent"}, "poll_interval": "1s"})
    issue = stage.file_issue()
    with looping(stage) as said:
        again = f"cannot finish the start of #{issue}"
        wait_for(lambda: again in said.read_text(), "the second tick")
        session = registry.load_issue_session(stage.project.root, f"dev-harb-{issue}")
        session.dir.problem.unlink()
        wait_for(session.dir.problem.exists, "another tick")
        session.dir.problem.unlink()
        wait_for(session.dir.problem.exists, "yet another tick")
        assert said.read_text().count(again) == 1
        assert "the tick failed" not in said.read_text()
