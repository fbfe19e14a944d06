"""What the forge or the remote refuses for good: a person hears of it, and no session stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.adapters.forge.model import IssueState
from sm.issues.act import retry
from sm.issues.poll import tick
from sm.issues.start import put_on_record
from sm.issues.work import claim
from sm.store import journal
from sm.views.event_words import describe, name_event
from tests.e2e.conftest import MakeStage
from tests.e2e.play import GITHUB, Play, seen_anew
from tests.e2e.stage import Stage, started
from tests.e2e.test_faults_of_forges import marks, side_of
from tests.forges.server import Fault, Reply
from tests.helpers import git, wait_for

FORBIDDEN = Reply(403, {"message": "Resource not accessible by personal access token"})


def said(stage: Stage, name: str) -> list[str]:
    """What the journal has of the events or steps of this name."""
    events = journal.read(stage.project.root.journal)
    return [describe(event) for event in events if name_event(event) == name]


def delete_issue(stage: Stage, issue: int) -> None:
    (stage.folder / "forge" / "issues" / f"{issue:04d}.md").unlink()


def refuse_deletions(stage: Stage) -> None:
    """The remote protects its branches."""
    hook = Path(stage.repository.bare) / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\ncase $1:$3 in refs/heads/*:*[!0]*) ;; refs/heads/*) "
        'echo "$1 is protected" >&2; exit 1 ;; esac\n'
    )
    hook.chmod(0o755)


@GITHUB
def test_pull_request_that_may_not_be_opened_is_told_to_a_person_and_not_tried_for_ever(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "REFUSED_FOR_S", 0.0)
    issue, site = play.start(), side_of(play).site
    site.faults = [Fault("/pulls", "POST", times=99, reply=FORBIDDEN)]
    play.push(issue, "good\n", "PHASE:awaiting_ci")
    assert play.decided(issue) == ["open-pull", "trouble"]
    assert len(marks(play, issue)) == 1
    [question] = play.side.open().issues.read(issue).comments
    assert "Resource not accessible" in question.body
    site.faults = []
    play.side.open().issues.comment(issue, "It may now.", author="ada")
    seen_anew(play)
    play.hears(issue, "It may now.")
    play.stage.write_phase(issue, "PHASE:awaiting_ci")
    play.react(issue)
    assert play.pull_of(issue)


@GITHUB
def test_pull_request_that_a_forge_refuses_for_a_moment_is_opened(play: Play) -> None:
    """It may not know the branch yet that was pushed to its remote."""
    issue = play.start()
    side_of(play).site.faults = [Fault("/pulls", "POST", reply=FORBIDDEN)]
    play.push(issue, "good\n", "PHASE:awaiting_ci")

    def is_offered() -> bool:
        play.react(issue)
        return play.side.open().pulls.find_newest(f"fix/{issue}") is not None

    wait_for(is_offered, "the pull request")
    assert marks(play, issue) == []


def test_merged_session_ends_although_its_branch_is_protected(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True)
    refuse_deletions(stage)
    issue = stage.file_issue()
    stage.poll()
    stage.approve(issue)
    wait_for(lambda: stage.is_over(issue), "the issue to be merged")
    assert f"refs/heads/fix/{issue} is protected" in said(stage, "delete branch")[0]
    refs = git(stage.repository.bare, "for-each-ref", "--format=%(refname)").split()
    assert claim.name_ref(issue) not in refs


def test_tick_tries_to_delete_one_of_the_branches_that_the_remote_protects(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issues = [stage.file_issue(f"Number {number}") for number in range(3)]
    for issue in issues:
        stage.project.forge.issues.close(issue)
        git(stage.repository.bare, "branch", f"fix/{issue}", "main")
    refuse_deletions(stage)
    assert [line for line in tick(stage.project) if "cannot delete" in line] == [
        "cannot delete the branch 'fix/1': remote 'origin' refuses the push: "
        "refs/heads/fix/1 is protected; error: hook declined to update refs/heads/fix/1"
    ]


def test_session_of_a_deleted_issue_is_ended_by_sm_kill(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    delete_issue(stage, issue)
    done = stage.sm("kill", "harb", str(issue))
    assert f"ended dev-harb-{issue}" in done.stdout
    assert "is not labelled blocked" in done.stdout
    assert not stage.sessions()


def test_session_of_a_deleted_issue_ends_when_its_agent_gives_up(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = started(stage)
    delete_issue(stage, issue)
    stage.write_phase(issue, "PHASE:failed\nReason: no such thing")
    wait_for(lambda: not stage.sessions(), "the session's end")
    assert said(stage, "label blocked")


def test_start_that_was_cut_short_is_let_go_if_its_issue_was_deleted(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    project = stage.project
    put_on_record(project, project.forge.issues.read(issue))
    claim.claim(project.git, project.settings, issue, project.root)
    delete_issue(stage, issue)
    assert f"#{issue} was settled in the meantime" in list(tick(stage.project))
    assert not stage.sessions()
    assert git(stage.repository.bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


@GITHUB
def test_issue_that_cannot_be_labelled_blocked_is_not_put_back_into_the_backlog(
    play: Play,
) -> None:
    """It would be picked up at once, for ever."""
    issue = play.start()
    play.hears(issue, "You work on issue")
    labels = f"/issues/{issue}/labels"
    side_of(play).site.faults = [Fault(labels, "POST", reply=FORBIDDEN)]
    play.stage.write_phase(issue, "PHASE:failed\nReason: no")
    play.wait_for_end(issue)
    now = play.side.open().issues.read(issue)
    assert (now.state, now.labels) == (IssueState.OPEN, ())
