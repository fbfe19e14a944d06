"""The protocol's names under the state root, taken by somebody: nobody's work waits for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.adapters.forge.model import Comment
from sm.issues.look.observe import recall
from sm.issues.look.snapshot import Snapshot
from sm.store import journal
from sm.views.event_words import describe
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import put_session, wait_for


def names(stage: Stage) -> list[Path]:
    """Those that nothing of ours has to read."""
    root = stage.project.root
    return [
        root.ci_result("harb", 1),
        root.renotify("harb", 1),
        root.terminal_log("harb", 1),
        root.idle_marker("dev-harb-1"),
    ]


def comments(stage: Stage) -> tuple[Comment, ...]:
    return stage.project.forge.issues.read(1).comments


def remarks(stage: Stage) -> list[str]:
    return [each.body for each in comments(stage) if "without a file" in each.body]


def tells_of_all(stage: Stage, taken: list[Path]) -> bool:
    told = [describe(event) for event in journal.read(stage.project.root.journal)]
    return all(any(each.startswith(f"cannot remove '{path}'") for each in told) for path in taken)


def test_an_issue_ends_merged_though_all_names_are_taken(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True)
    stage.file_issue()
    taken = names(stage)
    for path in taken:
        path.mkdir()
    stage.poll()
    stage.approve(1)
    wait_for(lambda: stage.is_over(1), "the end")
    assert stage.merged(1)
    assert any("CI passed for" in each for each in stage.told())
    assert len(remarks(stage)) == 1
    assert str(taken[0]) in remarks(stage)[0]
    assert all(path.is_dir() for path in taken)
    wait_for(lambda: tells_of_all(stage, taken), "a word of each that could not be removed")


def test_a_terminal_log_whose_name_is_taken_is_kept_in_the_sessions_own_directory(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    stage.file_issue()
    stage.project.root.terminal_log("harb", 1).mkdir()
    stage.poll()
    own = stage.session(1).dir.terminal_log
    wait_for(lambda: own.exists() and own.stat().st_size, "what the agent shows")
    assert stage.session(1).terminal_log == own
    assert stage.sm("logs", "harb", "1").stdout


def test_a_person_is_reminded_though_the_file_that_tells_of_it_cannot_be_written(
    stage_of: MakeStage,
) -> None:
    stage = stage_of(settings={"escalation": {"remind": "1s"}})
    stage.file_issue()
    stage.project.root.renotify("harb", 1).mkdir()
    stage.poll()
    wait_for(lambda: stage.told(), "the first prompt")
    stage.write_phase(1, "PHASE:escalate\nwhich one?")
    wait_for(lambda: len(comments(stage)) > 3, "a question, a word, two reminders")
    assert len(remarks(stage)) == 1
    stage.sm("reply", "harb", "1", "the left one")
    wait_for(lambda: any("the left one" in each for each in stage.told()), "the answer")


def is_a_directory(path: Path) -> None:
    path.mkdir()


def has_another_name(path: Path) -> None:
    path.with_name("another").touch()
    path.hardlink_to(path.with_name("another"))


def is_anothers(path: Path) -> None:
    path.touch()
    os.chown(path, 65534, 65534)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.mark.parametrize(
    "take", [is_a_directory, has_another_name, pytest.param(is_anothers, marks=AS_ROOT)]
)
def test_an_idle_marker_that_the_agent_has_not_written_says_nothing(
    stage_of: MakeStage, take: object
) -> None:
    project = stage_of().project
    session = put_session(project, 7)
    marker = project.root.idle_marker(session.name)
    assert callable(take)
    take(marker)
    assert recall(session, Snapshot(0.0)).facts.idle_since is None
    marker.rmdir() if marker.is_dir() else marker.unlink()
    marker.touch()
    assert recall(session, Snapshot(0.0)).facts.idle_since
