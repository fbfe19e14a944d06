"""Whose checks count on GitHub, and what is read if the token may not read them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sm.adapters.forge.errors import NotFoundError
from sm.adapters.forge.kinds import kind_of
from sm.adapters.forge.model import BOT, CheckState
from sm.config.load import load
from sm.plugins.doctor.project import check_forge
from sm.plugins.forges.rest.convert import make_status_part
from sm.plugins.forges.rest.shapes import StatusShape
from sm.plugins.forges.rest.status import combine
from sm.sessions.project import Project
from sm.setup.finding import Level
from tests.forges.server import Asked, Reply
from tests.forges.sides import RemoteSide, age, asked_for, github_of, opened
from tests.forges.state import Pull, Run, Status


def state_of(side: RemoteSide, head: str) -> set[CheckState]:
    """What a look anew, one after it, and a single question say of the check."""
    since = side.open().observe()
    return {
        since.pulls[0].check.state,
        side.open().observe(since).pulls[0].check.state,
        side.open().checks.read(head).state,
    }


# What ends without a job, or asks for something


@pytest.mark.parametrize("hides_checks", [True, False])
@pytest.mark.parametrize("word", ["startup_failure", "failure"])
def test_a_workflow_that_cannot_begin_has_failed(
    side: RemoteSide, word: str, hides_checks: bool
) -> None:
    number, head = opened(side)
    side.state.runs = [Run(9, head, "", word, time.time(), workflow="ci.yml", is_bare=True)]
    github_of(side).hides_checks = hides_checks
    assert state_of(side, head) == {CheckState.FAILURE}
    found = side.open().pulls.read(number).check
    assert (found.step, "its file may be wrong" in found.log) == ("ci.yml", True)


def test_that_it_could_not_begin_is_seen_by_the_next_look(side: RemoteSide) -> None:
    _, head = opened(side)
    side.state.runs.clear()
    age(side)
    since = side.open().observe()
    assert since.pulls[0].check.state is CheckState.PENDING
    since, lines = asked_for(side, since)
    assert lines == ["GET /issues", "POST /graphql"]
    side.state.runs = [Run(9, head, "", "failure", time.time(), workflow="ci.yml", is_bare=True)]
    assert side.open().observe(since).pulls[0].check.state is CheckState.FAILURE


def test_it_decides_while_a_required_check_is_missing_and_not_else(side: RemoteSide) -> None:
    _, head = opened(side)
    side.state.protected = ["build"]
    wrong = Run(9, head, "", "failure", time.time(), workflow="other", is_bare=True)
    side.state.runs = [wrong]
    assert state_of(side, head) == {CheckState.FAILURE}
    side.state.runs += [Run(10, head, "build", "success", time.time())]
    assert state_of(side, head) == {CheckState.SUCCESS}


def test_a_run_that_waits_for_a_person_has_not_failed(side: RemoteSide) -> None:
    _, head = opened(side)
    github_of(side).hides_checks = True
    side.state.runs = [Run(9, head, "", "action_required", time.time(), is_bare=True)]
    assert state_of(side, head) == {CheckState.PENDING}
    check = side.open().observe().pulls[0].check
    assert check.unapproved.lower() == "ci", "a person is told at once"
    assert check.url


def test_a_check_that_asks_for_something_has_failed_with_its_words(side: RemoteSide) -> None:
    number, head = opened(side)
    said = "Amend the commit with a sign-off line and push again."
    side.state.runs = [
        Run(71, head, "signed-off", "action_required", time.time(), app="sign-off-bot", text=said)
    ]
    assert state_of(side, head) == {CheckState.FAILURE}
    assert said in side.open().pulls.read(number).check.log


# A token without the permission "Checks"


@pytest.mark.parametrize(
    ("words", "apps", "expected"),
    [
        (["success"], [], CheckState.SUCCESS),
        (["failure", "success"], [], CheckState.FAILURE),
        (["success", ""], [], CheckState.PENDING),
        ([], [], CheckState.PENDING),
        (["success"], ["failure"], CheckState.FAILURE),
        (["success"], [""], CheckState.PENDING),
        ([], ["success"], CheckState.PENDING),
    ],
)
def test_without_the_permission_checks_the_jobs_of_actions_count(
    side: RemoteSide, words: list[str], apps: list[str], expected: CheckState
) -> None:
    _, head = opened(side)
    side.state.runs.clear()
    for at, word in enumerate(words):
        side.state.runs.append(Run(at + 1, head, f"job{at}", word, time.time(), workflow=str(at)))
    for at, word in enumerate(apps):
        side.state.runs.append(Run(at + 50, head, f"app{at}", word, time.time(), app="other"))
    github_of(side).hides_checks = True
    assert state_of(side, head) == {expected}


@pytest.mark.parametrize("count", [1, 101])
def test_a_required_check_is_seen_to_end_by_the_next_look(side: RemoteSide, count: int) -> None:
    """Also if the token is not told how many are in which state, or there are many of them."""
    _, head = opened(side)
    side.state.protected = ["job0"]
    side.state.runs.clear()
    now = time.time()
    side.state.runs += [Run(n + 1, head, f"job{n}", "success", now) for n in range(count)]
    side.state.runs[0].word = ""
    github_of(side).hides_checks = count == 1
    age(side)
    since = side.open().observe()
    assert since.pulls[0].check.state is CheckState.PENDING
    side.state.runs[0].word = "success"
    since = side.open().observe(since)
    assert since.pulls[0].check.state is CheckState.SUCCESS
    _, lines = asked_for(side, since)
    assert lines == ["GET /issues"], "and not asked for again"


def test_a_failed_job_is_told_with_its_log_and_its_name_without_that_permission(
    side: RemoteSide,
) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.FAILURE, "unit", "it broke\n")
    github_of(side).hides_checks = True
    found = side.open().pulls.read(number).check
    assert (found.state, found.step) == (CheckState.FAILURE, "unit: Run tests")
    assert "it broke" in found.log


def test_statuses_count_without_that_permission(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.state.statuses.append(Status(1, head, "ci/lint", "failure", time.time()))
    github_of(side).hides_checks = True
    assert state_of(side, head) == {CheckState.FAILURE}


def test_a_token_that_may_read_no_check_at_all_passes_none(side: RemoteSide) -> None:
    """Nothing of it is a success: in the end a person is asked."""
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.state.statuses.append(Status(1, head, "ci/lint", "success", time.time()))
    github_of(side).hides_checks = github_of(side).hides_actions = True
    github_of(side).hides_word = True
    assert state_of(side, head) == {CheckState.PENDING}


def test_doctor_says_which_checks_a_token_cannot_read(side: RemoteSide, tmp_path: Path) -> None:
    project = side.project
    config = load(side.hub.config, os.environ, tmp_path)
    side.state.labels = ["backlog", "blocked", "in-progress"]

    def problems() -> list[str]:
        url = "git@github.com:harbor/harb.git"
        return list(kind_of(project.forge).find_problems(project, url))

    def warnings() -> list[str]:
        found = check_forge(Project(config, project))
        return [one.what for one in found if one.level is Level.WARN]

    assert (problems(), warnings()) == ([], [])
    github_of(side).hides_checks = True
    assert problems() == []
    [said] = warnings()
    assert "may not read check runs" in said
    github_of(side).hides_actions = True
    [said] = problems()
    assert "read access to Actions" in said
    assert warnings() == []


def test_what_cannot_be_read_of_the_checks_is_no_success_and_costs_no_other(
    side: RemoteSide,
) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    respond = side.site.respond
    side.state.add("Mine", "", "mallory", Pull("fix/1", "main", head, fork="mallory"))

    def spoil(reply: Reply) -> Reply:
        key = "check_runs" if "check_runs" in (reply.data or {}) else "statuses"
        data = {**reply.data, key: [None, *reply.data[key]]}
        return Reply(reply.status, data, reply.headers)

    for part in ("/check-runs", "/status"):

        def answer(asked: Asked, part: str = part) -> Reply:
            reply = respond(asked)
            return spoil(reply) if asked.path.endswith(part) else reply

        side.site.respond = answer
        seen = side.open().observe()
        assert seen.pulls[0].check.state is CheckState.PENDING
        assert any("of the checks is passed over" in one for one in seen.problems)


# Whose they are


@pytest.mark.parametrize("hidden", [False, True])
def test_checks_of_a_fork_at_the_same_commit_are_none_of_ours(
    side: RemoteSide, hidden: bool
) -> None:
    """A stranger opens a pull request with our commit: its workflows write checks to that."""
    _, head = opened(side)
    side.finish(head, CheckState.FAILURE, "build", "no\n")
    side.state.add("Mine", "", "mallory", Pull("fix/1", "old", head, fork="mallory"))
    later = time.time() + 60
    side.state.runs.append(Run(900, head, "build", "success", later, again=1, of_fork=True))
    github_of(side).hides_checks = hidden
    assert state_of(side, head) == {CheckState.FAILURE}
    side.finish(head, CheckState.SUCCESS)
    side.state.runs[0].name = side.state.runs[-1].name = "build"
    side.state.runs[-1].word = "failure"
    assert state_of(side, head) == {CheckState.SUCCESS}


def test_a_fork_that_comes_later_with_our_commit_changes_nothing(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.FAILURE, "build", "no\n")
    since = side.open().observe()
    age(side, 60)
    side.state.add("Mine", "", "mallory", Pull("fix/1", "old", head, fork="mallory"))
    later = time.time() + 60
    side.state.runs.append(Run(900, head, "build", "success", later, again=1, of_fork=True))
    since = side.open().observe(since)
    assert since.pulls[0].check.state is CheckState.FAILURE
    assert side.open().observe(since).pulls[0].check.state is CheckState.FAILURE


def test_only_our_own_runs_are_run_again(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.FAILURE, "build", "no\n")
    side.state.runs.append(Run(900, head, "build", "", time.time(), again=1, of_fork=True))
    side.open().checks.rerun(head)
    assert side.state.runs[0].word == ""
    assert side.state.reruns == ["rerun-failed-jobs"]


def test_a_failed_run_behind_a_page_of_others_is_run_again(side: RemoteSide) -> None:
    _, head = opened(side)
    side.state.runs.clear()
    now = time.time()
    side.state.runs += [
        Run(at + 1, head, f"job{at}", "success" if at < 120 else "failure", now, workflow=str(at))
        for at in range(121)
    ]
    side.open().checks.rerun(head)
    assert [one.id for one in side.state.runs if not one.word] == [121]


def test_two_workflows_of_one_name_hide_nothing_of_each_other() -> None:
    """The combined status has the last of each: two of one context are of two workflow files."""
    statuses = [
        StatusShape("ci / test", state=word, id=ident, updated_at=f"2026-01-01T00:00:0{ident}Z")
        for ident, word in ((1, "failure"), (2, "success"))
    ]
    found = combine(map(make_status_part, statuses), "a" * 40, expected=True)
    assert (found.state, found.step) == (CheckState.FAILURE, "ci / test")


# Issues that are elsewhere


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("where", [("other/place", 7), ("other/place", 1)])
def test_an_issue_that_was_transferred_is_not_taken_for_another(
    side: RemoteSide, where: tuple[str, int], known: bool
) -> None:
    number = side.open().issues.add("a", author="ada").number
    if known:
        side.open().observe()
    github_of(side).transferred[number] = where
    with pytest.raises(NotFoundError, match="it was moved to '"):
        side.open().issues.read(number)
    with pytest.raises(NotFoundError):
        side.open().issues.close(number)
    assert [one.number for one in side.open().observe().issues] == [number], "until it is listed"


def test_an_issue_of_a_repository_that_was_renamed_is_the_same(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    configured = side.project
    side.state.former.append(side.state.name)
    side.state.name = "harbour/new"
    forge = kind_of(configured.forge).open_forge(configured, None, side.folder)
    assert forge.issues.read(number).title == "a"


def test_a_comment_goes_to_no_issue_that_was_transferred(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    side.open().observe()
    github_of(side).transferred[number] = ("other/place", number)
    with pytest.raises(NotFoundError):
        side.open().issues.comment(number, "Hello.", author=BOT, marker="m")
    with pytest.raises(NotFoundError):
        side.open().issues.comment(number, "Hello.", author=BOT)
    assert not [line for line in side.site.lines() if line.startswith("POST /repositories/")]


def test_looks_ask_nothing_more_for_forks_at_other_commits(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    other = side.push("fix/2", "two.txt")
    side.state.add("Mine", "", "mallory", Pull("fix/2", "main", other, fork="mallory"))
    _, lines = asked_for(side, None)
    assert not [line for line in lines if "/actions/" in line or "/commits/" in line]
