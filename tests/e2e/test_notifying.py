"""`notify_command` hears every word to a person about an issue, once each."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.issues.rules.matrix import ROWS
from sm.issues.rules.notices import NOTICES, SHORTLY
from sm.sessions.history import TELLING, StepVerb
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage, kill
from tests.e2e.test_faults import around
from tests.helpers import wait_for
from tests.plugins.notify.service import serve


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    return tmp_path / "heard"


def lines(heard: Path) -> list[str]:
    return heard.read_text().splitlines() if heard.exists() else []


def begin(
    stage_of: MakeStage, heard: Path, env: dict[str, str] | None = None, **settings: object
) -> tuple[Stage, int]:
    stage = stage_of(settings={"notify_command": f"cat >>'{heard}'", **settings})
    issue = stage.file_issue()
    stage.poll(env=env)
    wait_for(stage.told, "the first prompt")
    return stage, issue


def last(heard: Path, words: str) -> str:
    wait_for(lambda: any(words in line for line in lines(heard)), words)
    return lines(heard)[-1]


def test_a_question_its_reminder_and_its_end_are_told(stage_of: MakeStage, heard: Path) -> None:
    times = {"remind": "2s", "timeout": "5s"}
    stage, issue = begin(stage_of, heard, escalation=times)
    stage.write_phase(issue, "PHASE:escalate\nReason: which\x1b[2J colour?")
    last(heard, "is blocked")
    asked, *reminded, blocked = lines(heard)
    why = "The agent asks for a person (which colour?). sm reply harb 1 TEXT"
    assert asked == f"harb#1 needs a person: {why}"
    assert set(reminded) == {f"harb#1 still needs a person: {why}"}
    assert blocked.startswith("harb#1 is blocked: no answer came in time")


def test_an_agent_that_gives_up_is_told(stage_of: MakeStage, heard: Path) -> None:
    stage, issue = begin(stage_of, heard)
    stage.write_phase(issue, "PHASE:failed\nReason: no such API")
    told = (
        "harb#1 is blocked: the agent gave up (no such API). "
        "sm issue label harb#1 --remove blocked --add backlog"
    )
    assert last(heard, "is blocked") == told
    wait_for(lambda: not stage.sessions(), "the end")
    assert lines(heard) == [told]


def test_an_agent_that_dies_again_and_again_is_told(stage_of: MakeStage, heard: Path) -> None:
    stage, issue = begin(stage_of, heard, recovery={"max": 0})
    kill(stage.agent_pid(issue))
    assert last(heard, "is blocked") == (
        "harb#1 is blocked: the agent died again and again. "
        "sm issue label harb#1 --remove blocked --add backlog"
    )


def test_exhausted_ci_is_told_with_its_step(stage_of: MakeStage, heard: Path) -> None:
    ci = {"command": "echo 'step: unit tests'; exit 1", "poll": "1s", "max_fixes": 0}
    stage, issue = begin(stage_of, heard, ci=ci)
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_ci")
    assert last(heard, "needs a person") == (
        "harb#1 needs a person: CI keeps failing: the attempts are used up (step unit tests). "
        "sm reply harb 1 TEXT"
    )
    assert "  CI keeps failing (attempts: 0)\n" in stage.sm("trace", "harb", "1").stdout


def test_a_session_that_a_label_ends_is_told(stage_of: MakeStage, heard: Path) -> None:
    stage, issue = begin(stage_of, heard)
    stage.project.forge.issues.add_label(issue, "blocked")
    assert last(heard, "harb#1") == "harb#1 session ended: issue #1 was blocked"


@pytest.mark.parametrize("moment", ["before", "after", "receipt"])
def test_a_question_is_told_once_whenever_the_reactor_dies(
    stage_of: MakeStage, heard: Path, tmp_path: Path, moment: str
) -> None:
    once = tmp_path / "crashed"
    env = {"SM_CRASH_AT": f"escalate:{moment}", "SM_CRASH_ONCE": str(once)}
    stage, issue = begin(stage_of, heard, env)
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    wait_for(once.exists, "the reactor's death")
    wait_for(lambda: lines(heard), "the word to a person")
    assert len(lines(heard)) == 1


def test_a_review_that_waits_is_told_once_and_not_on_the_issue_whenever_the_reactor_dies(
    stage_of: MakeStage, heard: Path, tmp_path: Path
) -> None:
    once, points = tmp_path / "crashed", around(StepVerb.TELL)
    env = {"SM_CRASH_AT": ",".join(points), "SM_CRASH_ONCE": str(once)}
    stage, issue = begin(stage_of, heard, env, ci={"command": "true", "poll": "1s"})
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_ci")
    wait_for(lambda: "CI passed" in str(stage.told()), "CI")
    stage.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: {file.name for file in once.glob("*")} == set(points), "three deaths")
    told = last(heard, "waits for a review")
    pull = stage.project.forge.pulls.find_newest("fix/1")
    assert pull is not None
    assert told.endswith(f". sm review harb#{pull.number} --approve")
    said = stage.project.forge.issues.read_comments(issue)
    assert not [one for one in said if "review" in one.body]
    stage.sm("review", f"harb#{pull.number}", "--approve")
    wait_for(lambda: "Review: approved" in str(stage.told()), "the approval")
    assert len([line for line in lines(heard) if "waits for a review" in line]) == 1


def test_all_that_is_said_to_people_has_its_short_form() -> None:
    said = {step.text for row in ROWS for step in row.steps if step.verb in TELLING}
    assert said <= set(NOTICES)
    assert said - set(SHORTLY) == {"remark"}  # which was told as it was noted


def test_a_service_hears_of_a_question_from_a_pass(stage_of: MakeStage, heard: Path) -> None:
    """The pass is a fork of the server of passes, and forks the notifier."""
    with serve() as service:
        stage, issue = begin(stage_of, heard, notify={"channels": {"phone": {"url": service.url}}})
        stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
        wait_for(lambda: service.heard, "the service was asked")
        [message] = service.heard
        assert message["title"] == "harb#1: an agent asks"
        said = "harb#1 needs a person: The agent asks for a person (which colour?)."
        assert message["message"].startswith(said[:-1])
