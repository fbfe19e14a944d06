"""Whole journeys of an issue, with real tmux, git, processes and monitors."""

from __future__ import annotations

from pathlib import Path

from sm.adapters.forge.model import InlineComment, PullRequest, ReviewState
from sm.adapters.tmux import Tmux
from sm.sessions import terminal
from sm.store import events, journal
from sm.views.numbers import NumbersReader
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage, kill
from tests.helpers import HANG_S, git, wait_for


def assert_nothing_left(stage: Stage, issue: int) -> None:
    project = stage.project
    assert list(project.root.path.iterdir()) == [project.root.private]
    wait_for(lambda: not list(project.root.sessions.iterdir()), "the last remnant to be cleared")
    assert Tmux(project.config.tmux_socket).panes() == {}
    assert not project.settings.worktrees.exists()
    assert git(stage.repository.clone, "branch", "--list", "fix/*") == ""
    remote = git(stage.repository.bare, "for-each-ref", "--format=%(refname)")
    assert remote.split() == ["refs/heads/main"]
    assert project.forge.issues.read(issue).labels == ()


def test_issue_becomes_a_merged_branch(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    stage.poll()
    stage.approve(issue)
    wait_for(lambda: stage.is_over(issue), "the issue to be merged")
    assert stage.merged(issue)
    heard = [text.splitlines()[0] for text in stage.told()]
    assert len(heard) == 3, heard
    assert heard[1].startswith("[sm] CI passed")
    assert heard[2].startswith("[sm] Review: approved")
    assert_nothing_left(stage, issue)
    [told] = NumbersReader(stage.project.root).read([stage.project.name])
    assert (told.merged, told.project) == (1, stage.project.name)
    assert min(told.agent_s, told.ci_s, told.review_s) > 0
    assert (told.person_s, told.rest_s) == (0, 0)


def list_waits(stage: Stage) -> list[tuple[str, float]]:
    """The decisions about CI, and how long after its phase was written each was made."""
    found = journal.read(stage.project.root.journal)
    decided = (event for event in found if isinstance(event, events.Decided))
    return [(one.row, one.at - one.written_at) for one in decided if one.row.startswith("ci-")]


BY_SM: dict[str, object] = {"merge": {"by": "sm"}, "review": {"required": False}}


def test_sm_merges_by_itself_where_the_project_wants_that(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True, settings=BY_SM)
    issue = stage.file_issue()
    stage.poll()
    wait_for(lambda: stage.is_over(issue), "the issue to be merged")
    assert stage.merged(issue)
    assert len(stage.told()) == 2, stage.told()
    assert_nothing_left(stage, issue)


def test_failing_ci_is_handed_to_the_agent_with_its_log(stage_of: MakeStage) -> None:
    stage = stage_of(settings={"ci": {"command": "cat work.txt; grep good work.txt", "poll": "1s"}})
    issue = stage.file_issue()
    stage.poll()
    stage.push_work(issue, content="bad $(touch x) `y`\n")
    stage.write_phase(issue, "PHASE:awaiting_ci")
    failed = wait_for(lambda: [t for t in stage.told() if "CI failed" in t], "the CI result")
    assert "bad $(touch x) `y`" in failed[0]
    assert "grep good work.txt" in failed[0]
    stage.push_work(issue, content="good\n")
    stage.write_phase(issue, "PHASE:awaiting_ci")
    wait_for(lambda: [t for t in stage.told() if "CI passed for" in t], "the second CI result")
    (failed_row, first), (passed_row, second) = list_waits(stage)
    assert (failed_row, passed_row) == ("ci-failed", "ci-passed")
    assert 0 < first < HANG_S
    assert 0 < second < HANG_S


def test_requested_changes_reach_the_agent_with_file_and_line(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_review")
    pull = wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "a pull request")
    assert pull is not None
    stage.project.forge.pulls.review(
        pull.number,
        ReviewState.CHANGES_REQUESTED,
        body="Almost.",
        comments=(InlineComment("work.txt", 1, "say more"),),
        author="rita",
    )
    heard = wait_for(lambda: [t for t in stage.told() if "changes requested" in t], "the review")
    assert "Almost." in heard[0]
    assert "work.txt:1: say more" in heard[0]


def test_killed_agent_is_recovered_with_what_git_knows(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue(body="The whole body.")
    stage.poll()
    stage.push_work(issue, name="half.txt")
    Path(stage.session(issue).worktree, "uncommitted.txt").write_text("precious\n")
    kill(stage.agent_pid(issue))
    heard = wait_for(lambda: [t for t in stage.told() if "take over" in t], "the recovery")
    assert "The whole body." in heard[0]
    assert "half.txt" in heard[0]
    assert "uncommitted.txt" in heard[0]
    assert Path(stage.session(issue).worktree, "uncommitted.txt").read_text() == "precious\n"


def test_question_of_the_agent_is_answered_from_the_command_line(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    wait_for(lambda: stage.project.forge.issues.read(issue).comments, "the question on the forge")
    assert "which colour?" in stage.project.forge.issues.read(issue).comments[0].body
    stage.sm("reply", "harb", str(issue), "blue, $(please)")
    heard = wait_for(lambda: [t for t in stage.told() if "answered" in t], "the answer")
    assert "blue, $(please)" in heard[0]
    assert "asks for a person: which colour?" in stage.sm("trace", "harb", str(issue)).stdout


def test_failed_issue_is_blocked_until_a_person_takes_the_label_off(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    stage.write_phase(issue, "PHASE:failed\nReason: cannot do it")
    wait_for(lambda: not stage.sessions(), "the session's end")
    found = stage.project.forge.issues.read(issue)
    assert set(found.labels) == {"backlog", "blocked"}
    assert "cannot do it" in found.comments[0].body
    [log] = terminal.list_kept_logs(stage.project.root, f"dev-{stage.project.name}-{issue}")
    assert log.read_text()
    stage.poll()
    assert not stage.sessions()
    stage.project.forge.issues.remove_label(issue, "blocked")
    stage.poll()
    assert [s.issue for s in stage.sessions()] == [issue]


def test_issue_closed_by_a_person_ends_the_session_and_keeps_unpushed_work(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    worktree = Path(stage.session(issue).worktree)
    (worktree / "precious.txt").write_text("not committed\n")
    stage.project.forge.issues.close(issue)
    wait_for(lambda: not stage.sessions(), "the session's end")
    assert (worktree / "precious.txt").exists()
    assert str(worktree) in stage.project.forge.issues.read(issue).comments[-1].body


def test_issue_closed_without_a_commit_leaves_nothing(stage_of: MakeStage) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    assert f"refs/heads/fix/{issue}" in stage.project.git.ls_remote("origin")
    stage.project.forge.issues.close(issue)
    wait_for(lambda: not stage.sessions(), "the session's end")
    assert_nothing_left(stage, issue)


def test_issue_closed_with_a_pull_request_closes_it_and_is_worked_on_anew_when_reopened(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    head = stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_review")
    pull = wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "a pull request")
    assert pull is not None
    stage.project.forge.issues.close(issue)
    wait_for(lambda: not stage.sessions(), "the session's end")
    closed = stage.project.forge.pulls.read(pull.number)
    assert closed.state == "closed"
    assert f"issue #{issue} was closed" in closed.comments[-1].body
    assert git(stage.repository.bare, "rev-parse", f"fix/{issue}") == head

    stage.project.forge.issues.reopen(issue)
    stage.project.forge.issues.add_label(issue, "backlog")
    stage.poll()
    stage.write_phase(issue, "PHASE:awaiting_review")
    again = wait_for(lambda: _newer(stage, issue, pull.number), "another pull request")
    assert again is not None
    assert again.state == "open"
    assert [session.issue for session in stage.sessions()] == [issue]


def _newer(stage: Stage, issue: int, than: int) -> PullRequest | None:
    found = stage.project.forge.pulls.find_newest(f"fix/{issue}")
    return found if found and found.number > than else None


def test_merged_issue_that_is_reopened_is_worked_on_anew(stage_of: MakeStage) -> None:
    stage = stage_of(settings=BY_SM)
    issue = stage.file_issue()
    stage.poll()
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: stage.is_over(issue), "the issue to be merged")
    first = stage.project.forge.pulls.find_newest(f"fix/{issue}")
    assert first is not None
    stage.project.forge.issues.reopen(issue)
    stage.project.forge.issues.add_label(issue, "backlog")
    stage.poll()
    stage.push_work(issue, content="done better\n")
    stage.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: _newer(stage, issue, first.number), "another pull request")
    wait_for(lambda: stage.is_over(issue), "the issue to be merged again")
    assert git(stage.repository.bare, "show", "main:work.txt") == "done better"


def test_blocked_issue_that_is_closed_leaves_no_pull_request_and_no_empty_branch(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    idle, offered = stage.file_issue("Idle"), stage.file_issue("Offered")
    stage.poll()
    head = stage.push_work(offered)
    stage.write_phase(offered, "PHASE:awaiting_review")
    pull = wait_for(
        lambda: stage.project.forge.pulls.find_newest(f"fix/{offered}"), "a pull request"
    )
    assert pull is not None
    for issue in (idle, offered):
        stage.write_phase(issue, "PHASE:failed")
    wait_for(lambda: not stage.sessions(), "the sessions' ends")
    assert stage.project.forge.pulls.read(pull.number).state == "open"
    for issue in (idle, offered):
        stage.project.forge.issues.close(issue)
    said = stage.poll().stdout
    assert f"closed the pull request #{pull.number} of #{offered}" in said
    assert f"deleted the branch 'fix/{idle}'" in said
    assert stage.project.forge.pulls.read(pull.number).state == "closed"
    branches = git(stage.repository.bare, "for-each-ref", "--format=%(refname) %(objectname)")
    assert [line for line in branches.splitlines() if "fix/" in line] == [
        f"refs/heads/fix/{offered} {head}"
    ]
    again = stage.poll().stdout
    assert "closed the pull" not in again
    assert "deleted the branch" not in again
