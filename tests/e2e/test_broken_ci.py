"""CI that was killed says nothing of the commit: a person is told, and the agent hears nothing."""

from __future__ import annotations

from pathlib import Path

from sm.sessions.history import StepVerb, fold
from sm.sessions.plan import read_receipts
from tests.e2e.conftest import MakeStage
from tests.helpers import wait_for


def test_killed_ci_is_told_to_a_person_and_its_result_reaches_the_agent_when_it_is_run_again(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    mended = tmp_path / "mended"
    stage = stage_of(settings={"ci": {"command": f"test -e {mended} || kill -9 $$", "poll": "1s"}})
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_ci")
    comments = wait_for(lambda: stage.project.forge.issues.read(issue).comments, "the question", 60)
    assert "CI itself failed" in comments[0].body
    assert f"sm ci rerun harb {issue}" in comments[0].body
    wait_for(lambda: "escalated" in stage.sm("status").stdout, "the question on record")
    row = stage.sm("status", "--json").stdout
    assert '"ci":"broken"' in row.replace(": ", ":")
    assert f"sm ci rerun harb {issue}" in row
    assert len(stage.told()) == 1
    mended.touch()
    assert "CI runs again" in stage.sm("ci", "rerun", f"harb#{issue}").stdout
    wait_for(lambda: len(stage.told()) == 2, "the result", 60)
    assert "CI passed for" in stage.told()[1]
    assert len(stage.project.forge.issues.read(issue).comments) == 1
    assert fold(read_receipts(stage.session(issue).dir)).fixes == 0
    assert "escalated" not in stage.sm("status").stdout


def test_ci_that_is_broken_again_is_told_again(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"ci": {"command": "kill -9 $$", "poll": "1s"}})
    issue = stage.file_issue()
    stage.poll()
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_ci")
    wait_for(lambda: stage.project.forge.issues.read(issue).comments, "the question", 60)
    pull = stage.project.forge.pulls.find_newest(stage.session(issue).record.branch)
    assert pull is not None
    stage.sm("ci", "rerun", "harb", str(pull.number))
    wait_for(
        lambda: len(stage.project.forge.issues.read(issue).comments) == 2, "the second question", 60
    )


def test_another_run_of_the_same_commit_costs_no_fix(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"ci": {"command": "exit 3", "poll": "1s"}})
    issue = stage.file_issue()
    stage.poll()
    stage.push_work(issue)

    def asks(times: int) -> int:
        """The agent asks for CI, and is told for the `times`th time; what it has used up then."""

        def told() -> bool:
            found = read_receipts(stage.session(issue).dir)
            return sum(r.row == "ci-failed" and r.verb is StepVerb.INJECT for r in found) == times

        stage.write_phase(issue, "PHASE:awaiting_ci")
        wait_for(told, "the result to be handed over")
        return fold(read_receipts(stage.session(issue).dir)).fixes

    assert asks(1) == 1
    head = stage.project.forge.pulls.find()[0][0].head
    before = stage.project.forge.checks.read(head).at
    stage.sm("ci", "rerun", f"harb#{issue}")
    wait_for(lambda: stage.project.forge.checks.read(head).at > before, "the other run")
    wait_for(lambda: stage.project.forge.checks.read(head).state == "failure", "its result")
    assert asks(2) == 1
    assert asks(3) == 2, "to ask again without a new commit or another run is an attempt"
