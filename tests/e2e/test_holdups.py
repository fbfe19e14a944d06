"""A dev-poll that has stopped is missed: by status, by the doctor, and by people."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.issues.look.tick_record import read_polled
from sm.store.files import create_exclusive
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import put_tick, wait_for


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    return tmp_path / "heard"


def lines(heard: Path) -> list[str]:
    return heard.read_text().splitlines() if heard.exists() else []


def begin(stage_of: MakeStage, heard: Path, count: int) -> Stage:
    stage = stage_of(settings={"notify_command": f"cat >>'{heard}'", "max_sessions": count})
    for number in range(count):
        stage.file_issue(f"Issue {number}")
    stage.poll()
    wait_for(lambda: len(stage.told()) == count, "the agents")
    return stage


def passes(stage: Stage) -> None:
    """A pass over each session."""
    for session in stage.sessions():
        stage.sm("react", session.name)


def test_people_are_told_once_and_again_only_after_it_has_run(
    stage_of: MakeStage, heard: Path
) -> None:
    stage = begin(stage_of, heard, 2)
    tick = read_polled(stage.project.directory)
    assert tick is not None
    assert not tick.failed
    passes(stage)
    assert lines(heard) == []
    put_tick(stage.project, ago_s=600)
    passes(stage)
    passes(stage)
    wait_for(lambda: lines(heard), "the word to a person")
    [told] = lines(heard)
    assert told.partition(" ")[0] in ("harb#1", "harb#2"), "whichever looks first"
    assert told.endswith(
        " goes on without dev-poll: its last tick was completed 10m ago, and until the next "
        "one no issue is taken up. dev-poll --loop"
    )
    assert "since 10m harb: No dev-poll runs" in stage.sm("status").stdout
    comments = stage.project.forge.issues.read(1).comments
    assert not [one for one in comments if "dev-poll" in one.body]
    stage.poll()
    put_tick(stage.project, ago_s=700)
    passes(stage)
    wait_for(lambda: len(lines(heard)) == 2, "another word")


def test_who_was_to_tell_it_and_was_killed_tells_it_in_its_next_pass(
    stage_of: MakeStage, heard: Path
) -> None:
    stage = begin(stage_of, heard, 2)
    first, second = sorted(stage.sessions(), key=lambda one: one.issue)
    put_tick(stage.project, ago_s=600)
    assert create_exclusive(stage.project.directory.poll_missed, second.name)
    stage.sm("react", first.name)
    # The second one may have had a pass by now, of which its monitor knows.
    assert not [line for line in lines(heard) if line.startswith("harb#1")]
    stage.sm("react", second.name)
    wait_for(lambda: lines(heard), "the word to a person")
    assert lines(heard)[0].startswith("harb#2 goes on without dev-poll")
