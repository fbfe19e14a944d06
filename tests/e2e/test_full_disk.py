"""A full disk under the state: said in one line, nothing half-written, and all goes on later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sm.adapters.forge.model import CheckState
from sm.store.lock import is_held
from sm.store.paths import Root
from tests.disks import fill, small_disk
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.e2e.test_faults import assert_told_once, carry_on
from tests.e2e.test_journeys import assert_nothing_left
from tests.helpers import wait_for


@pytest.fixture
def small_root(root: Root) -> Iterator[Root]:
    """The state root on a file system of its own, with room for 2 MB."""
    with small_disk(root.path, "2m"):
        yield root


def said_in_one_line(stage: Stage) -> None:
    done = stage.poll(check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if "space left" in line]
    assert len(said) == 1, done
    assert "Traceback" not in done.stderr


def run_ci_again(stage: Stage, issue: int) -> None:
    """What the person does who has made room, if both runs of CI found none."""
    pull = wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "a pull request")
    assert pull
    head = pull.head
    wait_for(lambda: stage.project.forge.checks.read(head).state is not CheckState.PENDING, "CI")
    if stage.project.forge.checks.read(head).state is CheckState.BROKEN:
        stage.sm("ci", "rerun", f"harb#{issue}", check=False)  # the second run may be at work


def test_first_tick_on_a_full_disk_says_so_and_the_next_one_goes_on(
    small_root: Root, stage_of: MakeStage
) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    ballast = fill(small_root.path)
    said_in_one_line(stage)
    written = [
        path for path in small_root.path.rglob("*") if path.is_file() and path.stat().st_size
    ]
    assert written == [ballast]
    ballast.unlink()
    carry_on(stage, issue)
    assert stage.merged(issue)
    assert_nothing_left(stage, issue)


def test_disk_that_fills_up_during_the_work_loses_nothing(
    small_root: Root, stage_of: MakeStage
) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    other = stage.file_issue("Another one")
    stage.project.forge.issues.remove_label(other, "backlog")
    stage.poll()
    wait_for(lambda: "awaiting_ci" in stage.told("phase"), "the agent's first phase")
    ballast = fill(small_root.path)
    stage.project.forge.issues.add_label(other, "backlog")
    said_in_one_line(stage)
    reacted = stage.sm("react", "harb", str(issue), check=False)
    assert reacted.returncode == 1, reacted
    assert reacted.stderr.count("\n") == 1, reacted.stderr
    assert "space left" in reacted.stderr
    assert not list(small_root.path.rglob(".*")), "something half-written"
    assert is_held(stage.session(issue).dir.monitor_lock), "the monitor has ended"
    ballast.unlink()
    stage.poll()
    stage.approve(other)
    run_ci_again(stage, issue)
    carry_on(stage, issue)
    assert stage.merged(issue)
    assert stage.merged(other)
    assert_told_once(stage)
    assert_nothing_left(stage, other)
