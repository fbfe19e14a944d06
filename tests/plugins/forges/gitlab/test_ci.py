"""Pipelines, jobs and statuses of GitLab, as checks."""

from __future__ import annotations

import time

import pytest
from msgspec import structs

from sm.adapters.forge.errors import (
    AtWorkError,
    UnknownOutcomeError,
)
from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.model import (
    CheckState,
)
from sm.base.errors import UsageError
from sm.plugins.forges.rest.failed_job import clean_trace
from tests.forges.gitlab import FORK, Pipe
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, opened
from tests.forges.state import Pull, Run, Status
from tests.plugins.forges.gitlab.offers import dialect_of, offered

VERDICTS: list[tuple[list[str], CheckState, str]] = [
    ([], CheckState.PENDING, ""),
    (["success"], CheckState.SUCCESS, ""),
    (["success", ""], CheckState.PENDING, ""),
    (["failure", ""], CheckState.PENDING, ""),
    (["success", "failure"], CheckState.FAILURE, "job1"),
    (["failure", "failure"], CheckState.FAILURE, "job0, job1"),
    (["success", "may fail"], CheckState.SUCCESS, ""),
    (["failure", "may fail"], CheckState.FAILURE, "job0"),
    (["success", "manual"], CheckState.PENDING, ""),
    (["success", "optional"], CheckState.SUCCESS, ""),
    (["cancelled", "success"], CheckState.BROKEN, "pipeline"),
    (["skipped"], CheckState.BROKEN, "pipeline"),
    (["runner_system_failure"], CheckState.BROKEN, "job0"),
    (["failure", "runner_system_failure"], CheckState.FAILURE, "job0"),
    (["job_execution_timeout"], CheckState.FAILURE, "job0"),
    (["stuck_pending_no_matching_runners"], CheckState.BROKEN, "job0"),
    (["runner_interrupted"], CheckState.BROKEN, "job0"),
    (["server_timeout_running"], CheckState.FAILURE, "job0"),
]


def test_a_pipeline_says_what_gitlab_merges_by(side: RemoteSide) -> None:
    _, head = offered(side)
    forge, since = side.open(), None
    for jobs, state, step in VERDICTS:
        side.state.runs = [job_of(at, head, word) for at, word in enumerate(jobs)]
        since = forge.observe(since)
        check = since.pulls[0].check
        assert (check.state, check.step, check.head) == (state, step, head), jobs
        found = forge.checks.read(head)
        assert (found.state, found.step) == (state, step), jobs


def test_what_a_child_pipeline_has_failed_at_is_told_with_its_log(side: RemoteSide) -> None:
    _, head = offered(side)
    now = time.time()
    side.state.runs = [
        Run(1, head, "lint", "failure", now, log="line 3\n"),
        Run(2, head, "docs", "failure", now, child="parent_pipeline"),
        Run(3, head, "deploy", "failure", now, child="elsewhere"),
        Run(4, head, "build", "success", now, workflow="parent_pipeline"),
        Run(5, head, "spell", "failure", now, log="word 7\n", workflow="parent_pipeline"),
    ]
    seen = side.open().observe().pulls[0].check
    assert (seen.state, seen.step) == (CheckState.FAILURE, "deploy, docs: spell, lint")
    found = side.open().checks.read(head)
    assert (found.step, found.at) == (seen.step, seen.at), "it is the same run"
    for words in ("== lint\nline 3", "== docs: spell\nword 7", "== deploy\n"):
        assert words in found.log
    assert "other/-/pipelines/1" in found.log, "where to see what another project has run"


def test_only_the_last_try_of_a_job_counts(side: RemoteSide) -> None:
    _, head = offered(side)
    first = Run(1, head, "test", "failure", time.time(), log="once\n", was_retried=True)
    side.state.runs = [first, Run(2, head, "test", "success", time.time())]
    assert side.open().checks.read(head).state is CheckState.SUCCESS
    side.state.runs.append(Run(3, head, "lint", "failure", time.time(), log="line 3\n"))
    found = side.open().checks.read(head)
    assert (found.step, found.log) == ("lint", "line 3\n")


def job_of(at: int, head: str, word: str) -> Run:
    """A job as the table above names it."""
    kinds = {
        "may fail": {"word": "failure", "may_fail": True},
        "optional": {"word": "manual", "may_fail": True},
    }
    is_reason = "_" in word
    fields = kinds.get(word, {"word": "failure", "reason": word} if is_reason else {})
    return Run(at + 1, head, f"job{at}", **({"word": word, "at": time.time()} | fields))  # type: ignore[arg-type]


def test_what_other_programs_say_counts_as_well(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.state.statuses.append(Status(1, head, "scan", "failure", time.time(), "3 problems"))
    [pull] = side.open().observe().pulls
    assert (pull.check.state, pull.check.step) == (CheckState.FAILURE, "scan")
    assert side.open().checks.read(head).log == "3 problems"


def test_the_pipeline_of_the_merge_request_decides_and_not_that_of_the_branch(
    side: RemoteSide,
) -> None:
    _, head = offered(side)
    side.state.runs += [
        Run(1, head, "test", "success", time.time(), workflow="merge_request_event"),
        Run(2, head, "test", "failure", time.time()),
    ]
    assert side.open().observe().pulls[0].check.state is CheckState.SUCCESS
    side.state.runs[0].word, side.state.runs[1].word = "failure", "success"
    assert side.open().checks.read(head).state is CheckState.FAILURE


def test_a_pipeline_of_the_merged_result_is_known_by_its_parents(side: RemoteSide) -> None:
    _, head = offered(side)
    dialect_of(side).merged_results = {head: "f" * 40}
    run = Run(1, head, "test", "failure", time.time(), log="no\n", workflow="merge_request_event")
    side.state.runs.append(run)
    [pull] = side.open().observe().pulls
    assert (pull.check.state, pull.check.head) == (CheckState.FAILURE, head)
    assert side.open().checks.read(head).log == "no\n"
    side.hub.push("fix/1", content="more\n")
    dialect_of(side).late_pipeline = Pipe(
        5001, "f" * 40, "merge_request_event", "refs/merge-requests/1/merge", [run], head
    )
    assert side.open().observe().pulls[0].check.state is CheckState.PENDING, "it is of the last"


def test_a_pipeline_of_the_last_commit_says_nothing_of_this_one(side: RemoteSide) -> None:
    number, old = opened(side)
    side.finish(old, CheckState.SUCCESS)
    dialect_of(side).late_pipeline = dialect_of(side).pipelines()[0]
    side.hub.push("fix/1", content="more\n")
    assert side.open().observe().pulls[0].check.state is CheckState.PENDING
    assert side.open().pulls.read(number).check.state is CheckState.PENDING


def test_a_pipeline_that_could_not_be_made_tells_why(side: RemoteSide) -> None:
    _, head = offered(side)
    side.state.runs.append(Run(1, head, "", "failure", time.time(), text="jobs:x is no job"))
    found = side.open().checks.read(head)
    assert (found.state, found.log) == (CheckState.FAILURE, "jobs:x is no job")


def test_a_project_without_ci_needs_no_check(side: RemoteSide) -> None:
    settings = structs.replace(side.project.forge, has_ci=False)
    forge = open_forge(structs.replace(side.project, forge=settings), None, side.folder)
    offered(side)
    assert forge.observe().pulls[0].check.state is CheckState.NONE


def test_a_log_is_without_folds_stamps_colours_and_secrets(side: RemoteSide) -> None:
    _, head = opened(side)
    secret = "glpat-" + "a1B2" * 5
    said = "section_start:1700000000:step_script\r\x1b[0K\x1b[32;1m$ make\x1b[0;m\n"
    said += "line\n" * 500 + f"E  boom\ntoken={secret}\n"
    said += "section_end:1700000009:step_script\r\x1b[0K\x1b[31;1mERROR: Job failed\x1b[0;m\n"
    side.finish(head, CheckState.FAILURE, "test", said)
    lines = side.open().checks.read(head).log.splitlines()
    assert len(lines) == 200
    assert lines[-3] == "E  boom"
    assert lines[-1] == "ERROR: Job failed"
    assert secret not in "\n".join(lines)


def test_the_stamps_of_newer_runners_are_taken_off() -> None:
    stamp = "2026-01-02T03:04:05.123456Z 00O"
    data = f"{stamp} one\n{stamp} two \n{stamp}+goes on\n2026 three\n".encode()
    assert clean_trace(data) == "one\ntwo goes on\n2026 three\n"


def test_a_failure_of_the_runner_names_gitlabs_reason(side: RemoteSide) -> None:
    _, head = offered(side)
    side.state.runs.append(job_of(0, head, "runner_system_failure"))
    side.site.faults = [Fault(part="/trace", reply=Reply(404, {"message": "404 Not found"}))]
    log = side.open().checks.read(head).log
    assert log.startswith("GitLab's reason: runner_system_failure\ncannot read the log: GET")


def test_ci_whose_start_was_not_answered_is_not_started_twice(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.site.faults = [Fault(method="POST", part="/pipeline", drop=True, after=True)]
    with pytest.raises(UnknownOutcomeError):
        side.open().checks.rerun(head)
    assert side.state.reruns == ["pipeline of fix/1"]


def test_what_has_failed_runs_again_or_everything_if_nothing_has(side: RemoteSide) -> None:
    _, head = opened(side)
    with pytest.raises(AtWorkError):
        side.open().checks.rerun(head)
    side.finish(head, CheckState.FAILURE, "build", "no\n")
    side.open().checks.rerun(head)
    assert side.open().checks.read(head).state is CheckState.PENDING
    side.finish(head, CheckState.SUCCESS)
    side.open().checks.rerun(head)
    side.state.runs[-1].workflow = "merge_request_event"
    side.open().checks.rerun(head)
    assert side.state.reruns == ["retry", "pipeline of fix/1", "pipeline of !1"]
    side.state.runs[-1].word = "manual"
    with pytest.raises(UsageError, match="waits for a person"):
        side.open().checks.rerun(head)
    side.state.runs.clear()
    with pytest.raises(UsageError, match="has not run"):
        side.open().checks.rerun(head)


def test_what_a_fork_runs_on_our_commit_says_nothing(side: RemoteSide) -> None:
    """Everybody can fork the project and offer the same commit from there."""
    number, head = offered(side)
    forked = side.state.add("Mine", "", "mallory", Pull("fix/1", "main", head, fork="mallory"))
    theirs = Run(50, head, "test", "success", time.time(), workflow="push")
    dialect_of(side).request(forked).fork_pipeline = Pipe(
        9077, head, "push", "fix/1", [theirs], head, FORK
    )
    here = Run(60, head, "test", "success", workflow=f"merge_request_event {forked.number}")
    for word, state in (("failure", CheckState.FAILURE), ("success", CheckState.SUCCESS)):
        side.state.runs = [Run(1, head, "test", word, time.time(), log="ours\n"), here]
        theirs.word = here.word = "" if word == "success" else "success"
        found = side.open().checks.read(head)
        assert found.state is state
        assert found.log == ("ours\n" if word == "failure" else "")
        [pull] = [one for one in side.open().observe().pulls if one.number == number]
        assert pull.check.state is state


def test_only_a_pipeline_of_our_own_project_decides(side: RemoteSide) -> None:
    _, head = offered(side)
    side.state.runs = [Run(1, head, "test", "failure", time.time())]
    green = Run(50, head, "test", "success", time.time())
    dialect_of(side).late_pipeline = Pipe(9077, head, "push", "fix/1", [green], head, FORK)
    assert side.open().checks.read(head).state is CheckState.FAILURE
    assert side.open().observe().pulls[0].check.state is CheckState.FAILURE


def test_a_fork_keeps_nothing_from_running_again(side: RemoteSide) -> None:
    _, head = offered(side)
    forked = side.state.add("Mine", "", "mallory", Pull("fix/1", "main", head, fork="mallory"))
    busy = Run(50, head, "test", "", time.time(), workflow="push")
    dialect_of(side).request(forked).fork_pipeline = Pipe(
        9077, head, "push", "fix/1", [busy], head, FORK
    )
    side.state.runs = [Run(1, head, "test", "failure", time.time())]
    side.open().checks.rerun(head)
    assert side.state.reruns == ["retry"]
