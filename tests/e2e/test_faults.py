"""SIGKILL at every step: the issue still ends merged, and nothing is said or done twice."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest

import pytest

from sm.adapters import procfs
from sm.adapters.forge.model import ReviewState
from sm.issues.look.issue_text import read_taken
from sm.issues.look.reviews import read_taken as read_reviews
from sm.issues.rules.matrix import ROWS
from sm.sessions import plan
from sm.sessions.history import StepVerb
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import REPOSITORY, Env, Stage, kill
from tests.e2e.test_journeys import BY_SM, assert_nothing_left
from tests.helpers import git, kill_monitor, remove_tree, wait_for

DEV_POLL = REPOSITORY / "bin" / "dev-poll"
Points = tuple[str, ...]
"""Processes die at each of them, one after another, in one journey."""

STARTING = (
    *("start:recorded", "claim:before-push", "claim:after-push", "start:claimed"),
    *("worktree:before-add", "worktree:after-add", "worktree:copied", "worktree:set-up"),
    *("worktree:furnished", "start:worktree"),
    *("launch.before-start", "launch.after-start", "start:launched"),
)
PLANNING = ("plan:before-save", "plan:after-save", "plan:before-drop")
WAITING = ("slot:freed", "slot:taken")
FAILING = [StepVerb.LABEL_BLOCKED, StepVerb.COMMENT, StepVerb.RESTORE_BACKLOG]


def around(verb: StepVerb) -> Points:
    """Three at the most: after each death in a row the monitor waits twice as long."""
    return tuple(f"{verb}:{moment}" for moment in ("before", "after", "receipt"))


def carry_on(stage: Stage, issue: int, env: Env | None = None) -> None:
    """What cron does: tick after tick; and a reviewer who approves."""

    def over() -> bool:
        stage.poll(check=False, env=env)
        pull = stage.project.forge.pulls.find_newest(f"fix/{issue}")
        if pull and pull.state == "open" and not pull.reviews:
            stage.approve(issue)
        return stage.is_over(issue)

    wait_for(over, f"issue {issue} to be over", every_s=1.0)


def crash_at(stage: Stage, points: Points) -> dict[str, str]:
    """The environment in which the first process to reach each of the points dies there."""
    return {"SM_CRASH_AT": ",".join(points), "SM_CRASH_ONCE": str(stage.folder / "crashed")}


def assert_died_at(stage: Stage, points: Points) -> None:
    """At each of them, and within a plan's step one after another."""
    crashed = stage.folder / "crashed"

    def missing() -> set[str]:
        return set(points) - {file.name for file in crashed.glob("*")}

    wait_for(lambda: not missing(), f"somebody to come to {missing()}")


def assert_told_once(stage: Stage) -> None:
    """Every prompt was delivered once: no two messages to an agent are the same."""
    twice = [text for text, count in Counter(stage.told()).items() if count > 1]
    assert not twice, twice


def assert_commented_once(stage: Stage, issue: int) -> None:
    comments = [comment.body for comment in stage.project.forge.issues.read(issue).comments]
    assert len(comments) == len(set(comments)), comments


ENDING = (f"{StepVerb.FORGET}:before", f"{StepVerb.FORGET}:after")
SOON = [StepVerb.WRITE_CI_RESULT, StepVerb.INJECT, StepVerb.OPEN_PULL]
LAST = [StepVerb.KILL, StepVerb.CLEAN_LABELS, StepVerb.CLOSE_ISSUE]
LAST += [StepVerb.REMOVE_WORKTREE, StepVerb.DELETE_BRANCH, StepVerb.RELEASE_CLAIM]
TOGETHER = [
    soon + last
    for soon, last in zip_longest(
        [STARTING, PLANNING, WAITING, *map(around, SOON)],
        [*map(around, LAST), ENDING],
        fillvalue=(),
    )
]
"""The points of each journey: those of its last plan come long after the others."""


@pytest.mark.parametrize("points", TOGETHER, ids=lambda points: points[0])
def test_issue_is_merged_although_a_process_dies_at(points: Points, stage_of: MakeStage) -> None:
    stage = stage_of(auto=True, settings={"worktree": {"setup": "true"}})
    issue = stage.file_issue()
    carry_on(stage, issue, crash_at(stage, points))
    assert_died_at(stage, points)
    assert stage.merged(issue)
    assert_told_once(stage)
    assert_commented_once(stage, issue)
    assert_nothing_left(stage, issue)


@pytest.mark.parametrize("points", [*map(around, FAILING)], ids=FAILING)
def test_failed_issue_is_blocked_once_although_the_reactor_dies_at(
    points: Points, stage_of: MakeStage
) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    env = crash_at(stage, points)
    stage.poll(check=False, env=env)
    stage.write_phase(issue, "PHASE:failed\nReason: cannot")
    wait_for(
        lambda: stage.poll(check=False, env=env) and not stage.sessions(),
        "the end",
        60,
        every_s=0.5,
    )
    assert_died_at(stage, points)
    found = stage.project.forge.issues.read(issue)
    assert set(found.labels) == {"backlog", "blocked"}
    assert len(found.comments) == 1


@pytest.mark.parametrize("verb", [StepVerb.CLOSE_PULL, StepVerb.DELETE_EMPTY_BRANCH])
def test_closed_issue_leaves_nothing_although_the_reactor_dies_at(
    verb: StepVerb, stage_of: MakeStage
) -> None:
    points = around(verb)
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll(env=crash_at(stage, points))
    if verb is StepVerb.CLOSE_PULL:
        stage.push_work(issue)
        stage.write_phase(issue, "PHASE:awaiting_review")
        wait_for(lambda: stage.project.forge.pulls.find_newest(f"fix/{issue}"), "a pull request")
    stage.project.forge.issues.close(issue)
    assert_died_at(stage, points)
    wait_for(lambda: not stage.sessions(), "the session's end")
    pulls, _ = stage.project.forge.pulls.find()
    assert [(one.state, len(one.comments)) for one in pulls] == [("closed", 1)] * len(pulls)
    assert (f"refs/heads/fix/{issue}" in stage.project.git.ls_remote("origin")) is bool(pulls)


def test_person_is_asked_once_although_the_reactor_dies_at(stage_of: MakeStage) -> None:
    points = around(StepVerb.NOTIFY)
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll(env=crash_at(stage, points))
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    assert_died_at(stage, points)
    session = stage.session(issue)
    wait_for(lambda: '"escalate:' in session.dir.receipts.read_text(), "the receipt")
    wait_for(lambda: not session.dir.plan.exists(), "the end of the plan")
    assert len(stage.project.forge.issues.read(issue).comments) == 1


def test_sm_merges_once_although_the_reactor_dies_at(stage_of: MakeStage) -> None:
    points = around(StepVerb.MERGE)
    stage = stage_of(auto=True, settings=BY_SM)
    issue = stage.file_issue()
    env = crash_at(stage, points)
    wait_for(
        lambda: stage.poll(check=False, env=env) and stage.is_over(issue),
        "the end",
        90,
        every_s=0.5,
    )
    assert_died_at(stage, points)
    merges = git(stage.repository.bare, "rev-list", "--merges", "--count", "main")
    assert (stage.merged(issue), merges) == (True, "1")
    assert_nothing_left(stage, issue)


def test_person_is_reminded_once_although_the_reactor_dies_at(stage_of: MakeStage) -> None:
    points = around(StepVerb.REMIND)
    stage = stage_of(settings={"escalation": {"remind": "4s"}})
    issue = stage.file_issue()
    stage.poll(env=crash_at(stage, points))
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    assert_died_at(stage, points)
    session = stage.session(issue)
    wait_for(lambda: '"remind:' in session.dir.receipts.read_text(), "the receipt")
    wait_for(lambda: not session.dir.plan.exists(), "the end of the plan")

    def reminders() -> int:  # the next one may be due by now
        return sum(receipt.verb is StepVerb.REMIND for receipt in plan.read_receipts(session.dir))

    wait_for(
        lambda: len(stage.project.forge.issues.read(issue).comments) == 1 + reminders(),
        "one comment for each reminder",
    )


def test_an_edit_is_told_once_although_the_reactor_dies_at(stage_of: MakeStage) -> None:
    points = around(StepVerb.ADOPT_TEXT)
    stage = stage_of()
    issue = stage.file_issue(body="Please.")
    stage.poll(env=crash_at(stage, points))
    wait_for(stage.told, "the first prompt")
    stage.project.forge.issues.edit(issue, body="Please, soon.")
    assert_died_at(stage, points)
    directory = stage.session(issue).dir

    def is_known() -> bool:
        known = read_taken(directory)
        return known is not None and known.body == "Please, soon."

    wait_for(lambda: is_known() and not directory.edited.exists(), "the edit to be known")
    wait_for(lambda: not directory.plan.exists(), "the end of the plan")
    assert_told_once(stage)
    assert len(stage.told()) == 2


def test_an_edit_of_a_review_is_told_once_although_the_reactor_dies_at(
    stage_of: MakeStage,
) -> None:
    points, wish = around(StepVerb.ADOPT_REVIEW), ReviewState.CHANGES_REQUESTED
    stage = stage_of()
    issue, forge = stage.file_issue(), stage.project.forge
    stage.poll(env=crash_at(stage, points))
    stage.push_work(issue)
    stage.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: forge.pulls.find_newest(f"fix/{issue}"), "a pull request")
    forge.pulls.review(2, wish, "Not yet.", author="rita")
    wait_for(lambda: "Not yet." in stage.told()[-1], "the review to be told")
    file = stage.folder / "forge" / "pulls/0002.md"
    file.write_text(file.read_text().replace("Not yet.", "Almost."))
    assert_died_at(stage, points)
    directory = stage.session(issue).dir

    def is_known() -> bool:
        kept = read_reviews(directory).values()
        return [one.review.body for one in kept] == ["Almost."]

    wait_for(lambda: is_known() and not directory.review_edited.exists(), "it to be known")
    wait_for(lambda: not directory.plan.exists(), "the end of the plan")
    assert_told_once(stage)
    assert len(stage.told()) == 3


def test_lost_phase_file_is_replaced_although_the_reactor_dies_at(stage_of: MakeStage) -> None:
    points = around(StepVerb.CREATE_PHASE)
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll(env=crash_at(stage, points))
    wait_for(lambda: len(stage.told()) == 1, "the first prompt")
    wait_for(stage.session(issue).dir.next.exists, "the monitor's first look")
    stage.project.root.phase("harb", issue).unlink()
    assert_died_at(stage, points)
    wait_for(lambda: len(stage.told()) == 2, "the request to write the phase again")
    assert "phase file was lost" in stage.told()[1]
    assert stage.project.root.phase("harb", issue).read_text() == ""


def test_killed_agent_is_recovered_once_although_the_reactor_dies_at(stage_of: MakeStage) -> None:
    points = around(StepVerb.RECOVER)
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll(env=crash_at(stage, points))
    wait_for(stage.told, "the first prompt")
    kill(stage.agent_pid(issue))
    assert_died_at(stage, points)
    session = stage.session(issue)
    wait_for(lambda: stage.told() and "take over" in stage.told()[-1], "the recovery")
    wait_for(lambda: not session.dir.plan.exists(), "the end of the plan")
    assert [text.split()[1] for text in stage.told()] == ["work", "take"]


def test_killed_monitor_is_restarted_by_the_next_tick(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    stage.poll()
    session = stage.session(issue)
    kill_monitor(session)
    carry_on(stage, issue)
    assert stage.merged(issue)
    assert_told_once(stage)


def test_whole_tmux_server_dies(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    stage.poll()
    stage.agent_pid(issue)
    stage.project.tmux.command("kill-server")
    carry_on(stage, issue)
    assert stage.merged(issue)
    assert_nothing_left(stage, issue)


def lose_state(stage: Stage) -> None:
    for entry in stage.project.root.path.iterdir():
        remove_tree(entry) if entry.is_dir() else entry.unlink()


def test_state_directory_is_removed_while_the_agent_works(stage_of: MakeStage) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    stage.poll()
    wait_for(lambda: "awaiting_ci" in stage.told("phase"), "the agent's first phase")
    pid = stage.agent_pid(issue)
    lose_state(stage)
    carry_on(stage, issue)
    assert stage.merged(issue)
    wait_for(lambda: procfs.find(pid) is None, "the end of the first agent")
    assert_nothing_left(stage, issue)


def await_death(stage: Stage, issue: int) -> None:
    log = stage.session(issue).dir.monitor_log
    wait_for(lambda: "the reactor failed (137)" in log.read_text(), "the reactor's death")


@pytest.mark.parametrize(
    "verb", [StepVerb.REMOVE_WORKTREE, StepVerb.DELETE_BRANCH, StepVerb.RELEASE_CLAIM], ids=str
)
def test_nothing_is_left_of_a_merged_issue_whose_state_is_lost_before(
    verb: StepVerb, stage_of: MakeStage
) -> None:
    stage = stage_of(auto=True)
    issue = stage.file_issue()
    stage.poll(env={"SM_CRASH_AT": f"{verb}:before"})
    stage.approve(issue)
    await_death(stage, issue)
    lose_state(stage)
    assert stage.project.forge.issues.read(issue).state == "closed"
    planned = stage.run("bash", str(DEV_POLL), "--dry-run", check=True).stdout
    assert f"would let go of #{issue} " in planned
    stage.poll()
    assert stage.merged(issue)
    assert_nothing_left(stage, issue)


@pytest.mark.parametrize("settled", ["closed", "blocked"])
def test_agent_of_an_issue_that_is_settled_while_its_state_is_lost_is_ended(
    settled: str, stage_of: MakeStage
) -> None:
    stage = stage_of()
    issue = stage.file_issue()
    stage.poll()
    pid = stage.agent_pid(issue)
    head = stage.push_work(issue)
    forge = stage.project.forge
    lose_state(stage)
    forge.issues.close(issue) if settled == "closed" else forge.issues.add_label(issue, "blocked")
    stage.poll()
    wait_for(lambda: procfs.find(pid) is None, "the agent's end")
    assert not stage.sessions()
    assert set(forge.issues.read(issue).labels) == (
        set() if settled == "closed" else {"backlog", "blocked"}
    )
    remote = git(stage.repository.bare, "for-each-ref", "--format=%(refname) %(objectname)")
    assert "refs/sm/claims" not in remote
    assert f"refs/heads/fix/{issue} {head}" in remote, "work that is not merged is gone"


def test_two_ticks_at_once_start_an_issue_once(stage_of: MakeStage) -> None:
    from concurrent.futures import ThreadPoolExecutor

    stage = stage_of()
    issues = [stage.file_issue(f"Issue {n}") for n in range(2)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: stage.poll(), range(4)))
    stage.poll()
    assert sorted(s.issue for s in stage.sessions()) == issues
    wait_for(lambda: len(stage.told()) == 2, "both agents")
    assert_told_once(stage)


def test_every_effect_of_the_matrix_has_a_crash_test() -> None:
    tested = {
        *SOON,
        *LAST,
        *FAILING,
        StepVerb.NOTIFY,
        StepVerb.RECOVER,
        StepVerb.MERGE,
        StepVerb.REMIND,
    }
    tested |= {StepVerb.CREATE_PHASE, StepVerb.FORGET, StepVerb.ADOPT_TEXT, StepVerb.ADOPT_REVIEW}
    tested |= {StepVerb.CLOSE_PULL, StepVerb.DELETE_EMPTY_BRANCH}
    tested |= {StepVerb.PARK}  # in test_hook_rows.py
    tested |= {StepVerb.RERUN_CI}  # in test_ci_elsewhere.py
    tested |= {StepVerb.TELL}  # in test_notifying.py
    tested |= {StepVerb.KEEP_WORK}  # in tests/issues/work/test_wip.py
    tested |= {StepVerb.CONSULT}  # in tests/issues/look/test_observe.py
    # In tests/real/test_spending.py:
    tested |= {StepVerb.INTERRUPT, StepVerb.HAND_OFF, StepVerb.MENTION, StepVerb.LET_GO_ON}
    assert tested == {step.verb for row in ROWS for step in row.steps}
