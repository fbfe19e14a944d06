"""GitLab alone: numbers apart, commands in texts, pipelines, reviews, merges, faults."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.errors import (
    AtWorkError,
    BaseMovedError,
    HeadMovedError,
    MergeRefusedError,
    NotFoundError,
)
from sm.adapters.forge.gitlab import forge as gitlab_forge
from sm.adapters.forge.gitlab.commands import defuse, title_pull
from sm.adapters.forge.gitlab.log import clean_trace
from sm.adapters.forge.kinds import kind_of, open_forge
from sm.adapters.forge.model import (
    BOT,
    Batch,
    CheckState,
    Hold,
    InlineComment,
    IssueState,
    PullState,
    ReviewState,
)
from sm.adapters.forge.web.errors import LimitedError, RefusedError
from sm.adapters.forge.web.ledger import read_book
from sm.errors import SmError, UsageError
from tests.forges.gitlab import Gitlab, Pipe, leave_train
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, age, asked_for, opened, remote_side
from tests.forges.state import Pull, Run, Said, Status
from tests.helpers import git
from tests.hub import make_hub

COMMANDS = "Look:\n/merge\n  /close\n/label ~x\n"


@pytest.fixture
def side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteSide]:
    monkeypatch.setattr(gitlab_forge, "UNSURE_S", 0.0)
    with remote_side("gitlab", make_hub(tmp_path), tmp_path / "kept") as side:
        yield side


def dialect_of(side: RemoteSide) -> Gitlab:
    """The server's side."""
    assert isinstance(side.dialect, Gitlab)
    return side.dialect


def offered(side: RemoteSide) -> tuple[int, str]:
    """The same without any CI."""
    head = side.hub.push("fix/1")
    return side.open().open_pull("fix/1", "main", "a", author=BOT).number, head


# What an observation costs


def test_where_nothing_has_happened_it_is_two_requests_and_one_for_what_waits(
    side: RemoteSide,
) -> None:
    side.open().add_issue("a", author="ada")
    _, head = opened(side)
    age(side)
    since = side.open().observe()
    age(side)
    seen, lines = asked_for(side, since)
    assert lines == ["GET /issues", "GET /merge_requests", "GET /merge_requests/1"]
    assert (seen.issues, seen.pulls) == (since.issues, since.pulls)
    side.finish(head, CheckState.SUCCESS)
    assert asked_for(side, since)[1][2:] == ["GET /merge_requests/1", "GET /pipelines"]


def test_what_was_changed_while_lists_were_read_is_found_the_next_time(side: RemoteSide) -> None:
    number = side.open().add_issue("a", author="ada").number
    age(side)
    forge = side.open()
    since = forge.observe()
    assert float(since.validators["cursor"]) <= side.state.clock()
    side.state.label(side.state.entries[number], ["x"])
    assert forge.observe(since).issues[0].labels == ("x",)


def test_lists_are_read_to_their_end_whatever_their_links_say(side: RemoteSide) -> None:
    """A server behind a proxy may name itself by another address, and give fewer entries."""
    for number in range(45):
        side.state.add(f"t{number}", "", "ada")
    assert len(side.open().observe().issues) == 45
    assert [issue.number for issue in side.open().issues()[0]] == list(range(1, 46))


def test_limits_are_entered_and_a_refusal_for_their_number_is_waited_out(side: RemoteSide) -> None:
    forge = open_forge(side.project, None, side.folder)
    forge.observe()
    assert read_book(side.folder / "quota.json").limits["core"].limit == 2000
    too_many = Reply(429, raw=b"Retry later", headers={"Retry-After": "30"})
    side.site.faults = [Fault(part="/issues", reply=too_many)]
    with pytest.raises(LimitedError):
        forge.observe()
    assert forge.pause_s() > 20


# Numbers, states, texts


def test_an_issue_and_a_pull_request_of_one_number_are_two_things(side: RemoteSide) -> None:
    number = side.open().add_issue("a", author="ada").number
    pull, _ = opened(side)
    assert number == pull
    side.open().comment(number, "To the issue.", author=BOT, marker="m")
    assert side.open().comment(pull, "To the request.", author=BOT, marker="m", on_pull=True)
    assert [one.body for one in side.open().issue(number).comments] == ["To the issue."]
    assert [one.body for one in side.open().pull(pull).comments] == ["To the request."]
    assert side.open().pull(pull).name == "!1"


def test_what_gitlab_tells_itself_is_no_comment(side: RemoteSide) -> None:
    number = side.open().add_issue("a", author="ada").number
    side.open().comment(number, "Hello.", author="ada")
    assert [one.body for one in side.open().observe().issues[0].comments] == ["Hello."]


def test_no_text_of_others_is_a_command(side: RemoteSide) -> None:
    """GitLab does what a line such as /merge says, with the rights of our account."""
    forge = side.open()
    number = forge.add_issue("a", COMMANDS, author=BOT).number
    forge.edit_issue(number, body=COMMANDS)
    forge.comment(number, COMMANDS, author=BOT, marker="m")
    side.push("fix/1")
    pull = forge.open_pull("fix/1", "main", "a", COMMANDS, author=BOT).number
    forge.comment(pull, COMMANDS, author=BOT, on_pull=True)
    remarks = [InlineComment("work.txt", 1, COMMANDS), InlineComment("work.txt", 9, COMMANDS)]
    forge.submit_review(pull, ReviewState.COMMENTED, COMMANDS, remarks, author="rita")
    assert dialect_of(side).commanded == []
    assert forge.issue(number).comments[0].body.startswith("Look:\n\\/merge\n")


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("/merge", r"\/merge"),
        ("a\r\n\t/Close now", "a\r\n\t\\/Close now"),
        ("/usr/bin/env is there\nand/or", "/usr/bin/env is there\nand/or"),
        ("/ alone", "/ alone"),
        ("\n" * 60_000 + "/merge", "\n" * 60_000 + r"\/merge"),
    ],
)
def test_a_path_stays_and_a_command_does_not(text: str, harmless: str) -> None:
    began = time.process_time()
    assert defuse(text) == harmless
    assert time.process_time() - began < 1


def test_an_offered_branch_is_no_draft(side: RemoteSide) -> None:
    side.push("fix/1")
    assert side.open().open_pull("fix/1", "main", "Draft: a", author=BOT).title == "a"
    assert title_pull("[Draft] WIP: x") == "x"
    assert title_pull("Drafting") == "Drafting"
    assert title_pull("Draft:") == "Draft:"


def test_a_title_is_as_long_as_gitlab_takes_it(side: RemoteSide) -> None:
    made = side.open().add_issue("t" * 900, author="ada")
    assert len(made.title) == 255
    assert side.open().edit_issue(made.number, title="u" * 256).title.endswith("u…")


def test_labels_mean_all_of_them(side: RemoteSide) -> None:
    forge = side.open()
    forge.add_issue("a", labels=["x"], author="ada")
    both = forge.add_issue("b", labels=["x", "y"], author="ada").number
    assert [issue.number for issue in forge.issues(labels=["x", "y"])[0]] == [both]
    assert forge.issues(labels=["mistyped"])[0] == []
    assert [one.title for one in forge.issues(IssueState.OPEN)[0]] == ["a", "b"]


def test_a_pull_request_of_a_fork_is_none_of_ours(side: RemoteSide) -> None:
    head = side.push("fix/1")
    made = side.state.add("Mine", "", "mallory", Pull("fix/1", "main", head, fork="mallory"))
    side.finish(head, CheckState.SUCCESS)
    forge = side.open()
    seen, lines = asked_for(side, None)
    assert [pull.branch for pull in seen.pulls] == ["mallory:fix/1"]
    assert not [line for line in lines if "/merge_requests/1" in line]
    assert forge.pull_for("fix/1") is None
    with pytest.raises(MergeRefusedError, match="of a fork"):
        forge.merge(made.number, author=BOT)
    assert forge.open_pull("fix/1", "main", "ours", author=BOT).number != made.number


def test_merged_and_closed_pull_requests_are_told_apart(side: RemoteSide) -> None:
    first, head = opened(side, "fix/1")
    side.finish(head, CheckState.SUCCESS)
    side.open().merge(first, author=BOT)
    second, _ = opened(side, "fix/2")
    side.open().close_pull(second)
    found = {state: side.open().pulls(state)[0] for state in PullState}
    assert [one.number for one in found[PullState.MERGED]] == [first]
    assert [one.number for one in found[PullState.CLOSED]] == [second]
    assert found[PullState.OPEN] == []
    git(side.hub.repository.clone, "push", "-q", "origin", ":fix/1")
    again_ = side.open().pull_for("fix/1")
    assert again_
    assert again_.state is PullState.MERGED


def test_an_older_server_gives_a_patch_in_pieces(side: RemoteSide) -> None:
    number, _ = opened(side)
    whole = side.open().diff(number)
    side.site.faults = [Fault(part="/raw_diffs", reply=Reply(404, {"message": "404 Not Found"}))]
    pieces = side.open().diff(number)
    assert "diff --git a/fix-1.txt b/fix-1.txt\n" in whole
    assert pieces == (
        "diff --git a/fix-1.txt b/fix-1.txt\n--- /dev/null\n+++ b/fix-1.txt\n@@ -0,0 +1 @@\n+x\n"
    )
    assert "fix-1.txt | 1 +" in side.open().diff(number, "--stat")


# Whose words count


def test_who_may_only_read_is_no_writer(side: RemoteSide) -> None:
    side.admit("ada")
    for author in ("ada", "mallory", "reporter", "ad"):
        side.open().add_issue("a", author=author)
    since = side.open().observe()
    assert since.writers == ("ada",)
    assert side.open().find_writers(["ad", "ada", "reporter"]) == {"ada"}
    _, lines = asked_for(side, since)
    assert not [line for line in lines if "members" in line], "it is known"


def test_a_mark_of_somebody_else_is_no_mark(side: RemoteSide) -> None:
    number = side.open().add_issue("a", author="ada").number
    side.open().comment(number, "Forged.\n\n<!-- sm:m1 -->", author="mallory")
    assert side.open().comment(number, "Hello.", author=BOT, marker="m1")
    assert [one.marker for one in side.open().issue(number).comments] == ["", "m1"]


# Reviews


def review_of(side: RemoteSide, number: int, author: str, state: ReviewState) -> None:
    side.open().submit_review(number, state, author=author)
    age(side, 10)


@pytest.mark.parametrize("has_times", [True, False])
def test_an_approval_is_of_the_commit_that_was_there(side: RemoteSide, has_times: bool) -> None:
    """GitLab may keep it when more is pushed, and older servers do not say when it was given."""
    dialect_of(side).has_approval_times = has_times
    number, old = opened(side)
    age(side, 10)
    review_of(side, number, "rita", ReviewState.APPROVED)
    new = side.push("fix/1", content="more\n")
    side.open().observe()
    age(side, 10)
    review_of(side, number, "otto", ReviewState.APPROVED)
    [pull] = side.open().observe().pulls
    assert {one.author: one.head for one in pull.reviews} == {"rita": old, "otto": new}


def test_only_what_stands_now_counts(side: RemoteSide) -> None:
    number, _ = opened(side)
    review_of(side, number, "rita", ReviewState.CHANGES_REQUESTED)
    known = dialect_of(side).requests[number]
    assert [one.state for one in side.open().pull(number).reviews] == [
        ReviewState.CHANGES_REQUESTED
    ]
    known.reviewers["rita"] = "unreviewed"  # her review was asked for again
    assert side.open().pull(number).reviews == ()
    del known.reviewers["rita"]  # nobody has asked for it
    assert side.open().pull(number).reviews[0].state is ReviewState.CHANGES_REQUESTED
    review_of(side, number, "rita", ReviewState.APPROVED)
    assert [one.state for one in side.open().pull(number).reviews] == [ReviewState.APPROVED]
    known.approved_by.clear()
    dialect_of(side).tell(side.state.entries[-number], "rita", "unapproved this merge request")
    assert side.open().pull(number).reviews == ()


def test_a_note_that_only_looks_like_a_verdict_is_none(side: RemoteSide) -> None:
    number, _ = opened(side)
    side.open().comment(number, "approved this merge request", author="rita", on_pull=True)
    side.open().comment(number, "requested changes", author="rita", on_pull=True)
    assert side.open().pull(number).reviews == ()


def test_open_threads_are_remarks_without_what_others_say_in_them(side: RemoteSide) -> None:
    number, _ = opened(side)
    remarks = [InlineComment("fix-1.txt", 1, "Why?"), InlineComment("fix-1.txt", 1, "How?")]
    wish = ReviewState.CHANGES_REQUESTED
    side.open().submit_review(number, wish, "No.", remarks, author="rita")
    first, second = dialect_of(side).requests[number].talks
    first.notes.append(said_by(side, "mallory", "Delete everything."))
    first.notes.append(said_by(side, "rita", "Really?"))
    second.is_resolved = True
    pull = side.open().pull(number)
    [review] = pull.reviews
    assert review.body == "No."
    [found] = review.comments
    assert structs.replace(found, id="") == InlineComment("fix-1.txt", 1, "Why?\n\nReally?")
    assert [one.body for one in pull.comments] == [], "its text is the review's"


def said_by(side: RemoteSide, author: str, body: str) -> Said:
    """A note."""
    return Said(side.state.next_id(), author, body, side.state.clock())


def test_a_thread_without_a_verdict_is_shown_as_a_remark(side: RemoteSide) -> None:
    number, head = opened(side)
    remark = InlineComment("fix-1.txt", 1, "Why?")
    side.open().submit_review(number, ReviewState.COMMENTED, comments=[remark], author="rita")
    [review] = side.open().pull(number).reviews
    assert (review.state, review.head) == (ReviewState.COMMENTED, head)
    [found] = review.comments
    assert structs.replace(found, id="") == remark


def test_a_line_that_gitlab_does_not_take_is_named_in_the_text(side: RemoteSide) -> None:
    number, _ = opened(side)
    remark = InlineComment("fix-1.txt", 77, "Why?")
    side.open().submit_review(number, ReviewState.COMMENTED, comments=[remark], author="rita")
    assert [one.body for one in side.open().pull(number).comments] == ["fix-1.txt:77: Why?"]


def test_who_may_not_approve_is_told_so(side: RemoteSide) -> None:
    number, _ = opened(side)
    with pytest.raises(SmError, match="does not let 'sm' approve"):
        side.open().submit_review(number, ReviewState.APPROVED, author=BOT)
    for _ in range(2):
        side.open().submit_review(number, ReviewState.APPROVED, author="rita")
    with pytest.raises(HeadMovedError):
        side.open().submit_review(number, ReviewState.APPROVED, author="otto", head="0" * 40)


def test_a_request_for_changes_that_is_not_taken_is_told(side: RemoteSide) -> None:
    number, _ = opened(side)
    side.site.faults = [Fault(part="/notes", reply=Reply(202, {"summary": ["no"]}), times=9)]
    with pytest.raises(SmError, match="make it on the page"):
        side.open().submit_review(number, ReviewState.CHANGES_REQUESTED, author="rita")


# Checks


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
]


def test_a_pipeline_says_what_gitlab_merges_by(side: RemoteSide) -> None:
    _, head = offered(side)
    forge, since = side.open(), None
    for jobs, state, step in VERDICTS:
        side.state.runs = [job_of(at, head, word) for at, word in enumerate(jobs)]
        since = forge.observe(since)
        check = since.pulls[0].check
        assert (check.state, check.step, check.head) == (state, step, head), jobs
        found = forge.check(head)
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
    found = side.open().check(head)
    assert (found.step, found.at) == (seen.step, seen.at), "it is the same run"
    for words in ("== lint\nline 3", "== docs: spell\nword 7", "== deploy\n"):
        assert words in found.log
    assert "other/-/pipelines/1" in found.log, "where to see what another project has run"


def test_only_the_last_try_of_a_job_counts(side: RemoteSide) -> None:
    _, head = offered(side)
    first = Run(1, head, "test", "failure", time.time(), log="once\n", was_retried=True)
    side.state.runs = [first, Run(2, head, "test", "success", time.time())]
    assert side.open().check(head).state is CheckState.SUCCESS
    side.state.runs.append(Run(3, head, "lint", "failure", time.time(), log="line 3\n"))
    found = side.open().check(head)
    assert (found.step, found.log) == ("lint", "line 3\n")


def job_of(at: int, head: str, word: str) -> Run:
    """A job as the table above names it."""
    kinds = {
        "may fail": {"word": "failure", "may_fail": True},
        "optional": {"word": "manual", "may_fail": True},
    }
    reasons = ("runner_system_failure", "job_execution_timeout")
    fields = kinds.get(word, {"word": "failure", "reason": word} if word in reasons else {})
    return Run(at + 1, head, f"job{at}", **({"word": word, "at": time.time()} | fields))  # type: ignore[arg-type]


def test_what_other_programs_say_counts_as_well(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.state.statuses.append(Status(1, head, "scan", "failure", time.time(), "3 problems"))
    [pull] = side.open().observe().pulls
    assert (pull.check.state, pull.check.step) == (CheckState.FAILURE, "scan")
    assert side.open().check(head).log == "3 problems"


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
    assert side.open().check(head).state is CheckState.FAILURE


def test_a_pipeline_of_the_merged_result_is_known_by_its_parents(side: RemoteSide) -> None:
    _, head = offered(side)
    dialect_of(side).merged_results = {head: "f" * 40}
    run = Run(1, head, "test", "failure", time.time(), log="no\n", workflow="merge_request_event")
    side.state.runs.append(run)
    [pull] = side.open().observe().pulls
    assert (pull.check.state, pull.check.head) == (CheckState.FAILURE, head)
    assert side.open().check(head).log == "no\n"
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
    assert side.open().pull(number).check.state is CheckState.PENDING


def test_a_pipeline_that_could_not_be_made_tells_why(side: RemoteSide) -> None:
    _, head = offered(side)
    side.state.runs.append(Run(1, head, "", "failure", time.time(), text="jobs:x is no job"))
    found = side.open().check(head)
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
    lines = side.open().check(head).log.splitlines()
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
    assert side.open().check(head).log == "GitLab's reason: runner_system_failure"


def test_what_has_failed_runs_again_or_everything_if_nothing_has(side: RemoteSide) -> None:
    _, head = opened(side)
    with pytest.raises(AtWorkError):
        side.open().rerun_check(head)
    side.finish(head, CheckState.FAILURE, "build", "no\n")
    side.open().rerun_check(head)
    assert side.open().check(head).state is CheckState.PENDING
    side.finish(head, CheckState.SUCCESS)
    side.open().rerun_check(head)
    side.state.runs[-1].workflow = "merge_request_event"
    side.open().rerun_check(head)
    assert side.state.reruns == ["retry", "pipeline of fix/1", "pipeline of !1"]
    side.state.runs[-1].word = "manual"
    with pytest.raises(UsageError, match="waits for a person"):
        side.open().rerun_check(head)
    side.state.runs.clear()
    with pytest.raises(UsageError, match="has not run"):
        side.open().rerun_check(head)


# Merges


def ready(side: RemoteSide) -> tuple[int, str]:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    return number, head


def test_gitlab_is_waited_for_while_it_finds_out(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).asked_until_sure = 3
    assert side.open().merge(number, author=BOT).state is PullState.MERGED


def test_while_gitlab_does_not_find_out_the_merge_stays_to_be_done(side: RemoteSide) -> None:
    number, _ = ready(side)
    side.state.unsure = True
    with pytest.raises(BaseMovedError, match="still finding out"):
        side.open().merge(number, author=BOT)
    assert side.open().pull(number).state is PullState.OPEN


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        ("not_approved", "405 Method Not Allowed: the project asks for an approval"),
        ("discussions_not_resolved", "a thread is not resolved"),
        ("a_new_word", "405 Method Not Allowed: a_new_word"),
    ],
)
def test_a_refusal_is_shown_in_gitlabs_words_and_ours(
    side: RemoteSide, standing: str, said: str
) -> None:
    number, _ = ready(side)
    dialect_of(side).standing = standing
    with pytest.raises(MergeRefusedError, match=said):
        side.open().merge(number, author=BOT)


def test_a_draft_is_not_merged(side: RemoteSide) -> None:
    number, _ = ready(side)
    side.state.entries[-number].title = "Draft: a"
    with pytest.raises(MergeRefusedError, match="it is a draft"):
        side.open().merge(number, author=BOT)


def held(side: RemoteSide, since: Batch | None = None) -> tuple[Hold, str]:
    [pull] = side.open().observe(since).pulls
    return pull.hold, pull.held


def test_a_branch_that_must_be_rebased_is_behind(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).merge_method = "rebase_merge"
    assert held(side) == (Hold.NONE, "")
    side.push("main", "other.txt")
    assert held(side) == (Hold.BEHIND, "the branch is behind 'main'")
    assert not side.open().pull(number).conflicts
    with pytest.raises(MergeRefusedError, match="it has to be rebased on 'main'"):
        side.open().merge(number, author=BOT)


def test_what_is_in_the_way_of_a_merge_is_known_before(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).standing = "not_approved"
    said = "the project asks for an approval that is missing"
    seen = side.open().observe()
    assert (seen.pulls[0].hold, seen.pulls[0].held) == (Hold.BLOCKED, said)
    assert side.open().pull(number).held == said
    dialect_of(side).standing = "mergeable"
    side.state.unsure = True
    assert held(side, seen) == (Hold.BLOCKED, said), "as it was, while GitLab is finding out"
    side.state.unsure = False
    assert held(side, seen) == (Hold.NONE, "")


def test_a_merge_waits_for_a_pipeline_that_has_begun_since(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).standing = "ci_still_running"
    with pytest.raises(BaseMovedError, match="is still running"):
        side.open().merge(number, author=BOT)


# Merge trains


def test_a_project_with_merge_trains_merges_by_one(side: RemoteSide) -> None:
    """A plain merge would go past the train."""
    number, head = ready(side)
    side.state.has_queue = True
    made = side.open().merge(number, head=head, author=BOT)
    assert (made.state, made.hold, made.held) == (
        PullState.OPEN,
        Hold.QUEUED,
        "it is in the merge train",
    )
    assert held(side)[0] is Hold.QUEUED
    sent = len(side.site.asked)
    again = side.open().merge(number, head=head, author=BOT)
    assert again.hold is Hold.QUEUED
    assert not [line for line in side.site.lines(sent) if not line.startswith("GET")]
    [tried] = [asked for asked in side.site.asked if "/merge_trains/" in asked.path]
    assert tried.data == {"sha": head}
    leave_train(dialect_of(side), number, "its pipeline failed")
    assert held(side) == (Hold.NONE, "")
    said = "it was removed from the merge train: its pipeline failed"
    assert side.open().pull(number).held == said


def test_a_place_in_a_train_whose_answer_is_lost_is_one(side: RemoteSide) -> None:
    number, head = ready(side)
    side.state.has_queue = True
    side.site.faults = [Fault(part="/merge_trains/", drop=True, after=True)]
    assert side.open().merge(number, head=head, author=BOT).hold is Hold.QUEUED


def test_a_merge_train_takes_only_the_reviewed_commit(side: RemoteSide) -> None:
    number, head = ready(side)
    side.state.has_queue = True
    moved = Reply(409, {"message": "SHA does not match HEAD of source branch"})
    side.site.faults = [Fault(part="/merge_trains/", reply=moved)]
    with pytest.raises(HeadMovedError):
        side.open().merge(number, head=head, author=BOT)


def test_what_a_merge_train_does_not_take_is_told(side: RemoteSide) -> None:
    number, _ = ready(side)
    side.state.has_queue = True
    dialect_of(side).standing = "discussions_not_resolved"
    with pytest.raises(MergeRefusedError, match="Failed to merge: a thread is not resolved"):
        side.open().merge(number, author=BOT)


def test_what_a_person_has_set_to_auto_merge_is_left_to_gitlab(side: RemoteSide) -> None:
    number, _ = ready(side)
    [(_, pull)] = side.state.pulls()
    pull.place = 1
    made = side.open().merge(number, author=BOT)
    assert (made.state, made.hold) == (PullState.OPEN, Hold.QUEUED)


def test_an_account_that_may_not_merge_is_not_taken_for_a_wrong_token(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).may_merge = False
    with pytest.raises(MergeRefusedError, match="may not merge into 'main'"):
        side.open().merge(number, author=BOT)


@pytest.mark.parametrize("status", [401, 405, 406, 409, 422])
def test_what_others_have_merged_meanwhile_is_merged(side: RemoteSide, status: int) -> None:
    number, _ = ready(side)
    refusal = Reply(status, {"message": "no"})
    side.site.faults = [Fault(part="/merge", reply=refusal, after=True)]
    side.site.faults[0].part = f"/merge_requests/{number}/merge"
    merged = side.open().merge(number, author=BOT)
    assert merged.state is PullState.MERGED
    assert merged.merged_as == side.open().branch_head("main")


def test_a_push_in_the_midst_of_a_merge_is_told(side: RemoteSide) -> None:
    number, head = ready(side)
    moved = Reply(409, {"message": "SHA does not match HEAD of source branch"})
    side.site.faults = [Fault(part="/merge_requests/1/merge", reply=moved)]
    with pytest.raises(HeadMovedError):
        side.open().merge(number, head=head, author=BOT)


def test_a_merge_whose_answer_is_lost_is_a_merge(side: RemoteSide) -> None:
    number, head = ready(side)
    side.site.faults = [Fault(part="/merge_requests/1/merge", drop=True, after=True)]
    assert side.open().merge(number, head=head, author=BOT).state is PullState.MERGED


def test_only_a_wish_for_one_commit_is_sent(side: RemoteSide) -> None:
    """How a project merges is its own setting."""
    for method, branch in (("merge", "fix/1"), ("squash", "fix/2")):
        number, head = opened(side, branch)
        side.finish(head, CheckState.SUCCESS)
        settings = structs.replace(side.project.forge, merge_method=method)
        project = structs.replace(
            side.project,
            forge=settings,
            review=structs.replace(side.project.review, required=False),
        )
        open_forge(project, None, side.folder).merge(number, author=BOT)
    sent = [asked.data for asked in side.site.asked if asked.path.endswith("/merge")]
    assert ["squash" in data for data in sent] == [False, True]
    assert all(data["sha"] for data in sent)


# Faults


@pytest.mark.parametrize("after", [False, True])
def test_a_comment_stands_once_whatever_happens_to_its_answer(
    side: RemoteSide, after: bool
) -> None:
    number = side.open().add_issue("a", author="ada").number
    side.site.faults = [Fault(part=f"POST /api/v4/projects/harbor%2Fharb/issues/{number}/notes")]
    side.site.faults[0].drop, side.site.faults[0].after = True, after
    side.open().comment(number, "Hello.", author=BOT, marker="m1")
    assert len(side.state.entries[number].comments) == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_pull_request_is_opened_once_whatever_happens_to_its_answer(
    side: RemoteSide, after: bool
) -> None:
    side.push("fix/1")
    part = "POST /api/v4/projects/harbor%2Fharb/merge_requests"
    side.site.faults = [Fault(part=part, reply=Reply(502), after=after)]
    assert side.open().open_pull("fix/1", "main", "a", author=BOT).number
    assert len(list(side.state.pulls())) == 1


def test_a_pull_request_of_another_process_is_ours(side: RemoteSide) -> None:
    side.push("fix/1")
    side.open().open_pull("fix/1", "main", "a", author=BOT)
    empty = Fault(part="GET /api/v4/projects/harbor%2Fharb/merge_requests", reply=Reply(data=[]))
    side.site.faults = [empty]
    assert side.open().open_pull("fix/1", "main", "a", author=BOT).number == 1


def test_what_is_wrong_with_a_field_is_told_in_gitlabs_words(side: RemoteSide) -> None:
    number = side.open().add_issue("a", author="ada").number
    refusal = Reply(400, {"message": {"title": ["is too short", "is odd"], "base": "no"}})
    side.site.faults = [Fault(part="PUT", reply=refusal)]
    with pytest.raises(RefusedError, match="title is too short, is odd; base no"):
        side.open().close_issue(number)
    scope = Reply(403, {"error": "insufficient_scope", "error_description": "It needs more."})
    side.site.faults = [Fault(part="PUT", reply=scope)]
    with pytest.raises(RefusedError, match=r"insufficient_scope: It needs more\."):
        side.open().close_issue(number)


def test_a_renamed_project_is_followed_by_its_id(side: RemoteSide) -> None:
    number = side.open().add_issue("a", author="ada").number
    configured = side.project
    open_forge(configured, None, side.folder).observe()
    side.state.name = "harbour/sub/new"
    forge = open_forge(configured, None, side.folder)
    seen = forge.observe()
    assert "is called 'harbour/sub/new' now" in seen.problems[0]
    assert forge.close_issue(number).state is IssueState.CLOSED
    with pytest.raises(NotFoundError):
        forge.issue(99)


def test_what_is_wrong_is_told(side: RemoteSide) -> None:
    side.state.name = "harbor/sub/harb"
    project = side.project

    def problems() -> list[str]:
        url = "ssh://git@code.example.com/harbor/sub/harb.git"
        return list(kind_of(project.forge).find_problems(project, url))

    assert "has no label" in problems()[0]
    side.state.labels = ["backlog", "in-progress", "blocked"]
    assert problems() == []
    dialect_of(side).scopes = ["read_api"]
    assert problems() == ["the token has no scope 'api' (only read_api): make one that has it"]
    dialect_of(side).may_merge = True
    side.state.name = "gone/gone"
    assert "has no repository 'harbor/sub/harb'" in problems()[0]


def test_hostile_words_are_bounded_where_they_enter(side: RemoteSide) -> None:
    bad = "\x1b]0;x\x07 " + "A" * 5000
    entry = side.state.add(bad, "b" * 100, "ada")
    side.state.label(entry, [f"l{number}" * 100 for number in range(300)])
    number, head = offered(side)
    side.state.entries[-number].title = bad
    side.state.runs.append(Run(1, head, bad, "failure", time.time(), log=bad, reason=bad))
    seen = side.open().observe()
    [issue], [pull] = seen.issues, seen.pulls
    assert max(len(issue.title), len(pull.title)) <= 1000
    assert max(map(len, issue.labels)) <= 200
    assert len(issue.labels) <= 100
    assert "\x1b" not in issue.title + pull.title + pull.check.step + side.open().check(head).log
