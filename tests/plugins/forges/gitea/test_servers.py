"""What Forgejo and Gitea do that their descriptions do not say."""

from __future__ import annotations

import time

import pytest

from sm.adapters.forge.errors import BaseMovedError, MergeRefusedError, NothingToMergeError
from sm.adapters.forge.kinds import kind_of
from sm.adapters.forge.model import (
    BOT,
    CheckState,
    Hold,
    InlineComment,
    PullState,
    ReviewState,
)
from sm.adapters.forge.protocol import Limited
from sm.plugins.forges.rest.failed_job import name_step
from sm.plugins.forges.rest.shapes import JobShape, StepShape
from tests.forges.gitea import Gitea
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, opened
from tests.forges.state import Opinion, Pull, Run, Status
from tests.helpers import git


def dialect_of(side: RemoteSide) -> Gitea:
    assert isinstance(side.dialect, Gitea)
    return side.dialect


# Statuses


def test_a_failure_on_a_later_page_of_statuses_is_one(side: RemoteSide) -> None:
    _, head = opened(side)
    side.state.runs = [
        Run(number, head, f"job {number:02}", "success" if number > 1 else "failure")
        for number in range(1, 70)
    ]
    assert side.open().observe().pulls[0].check.state is CheckState.FAILURE
    found = side.open().checks.read(head)
    assert (found.state, found.step) == (CheckState.FAILURE, "job 01")


def test_without_a_count_statuses_are_read_until_a_page_is_empty(side: RemoteSide) -> None:
    """A proxy may take the header away."""
    _, head = opened(side)
    side.state.runs = [Run(number, head, f"job {number}", "success") for number in range(1, 62)]
    side.state.runs[0].word = "failure"
    respond = side.site.respond

    def without(asked: object) -> object:
        reply = respond(asked)  # type: ignore[arg-type]
        reply.headers.pop("X-Total-Count", None)
        return reply

    side.site.respond = without  # type: ignore[assignment]
    assert side.open().checks.read(head).state is CheckState.FAILURE


def test_two_workflow_files_with_one_context_both_count(side: RemoteSide) -> None:
    _, head = opened(side)
    now = time.time()
    side.state.runs = [
        Run(1, head, "CI / test (push)", "failure", now),
        Run(2, head, "CI / test (push)", "success", now + 5, workflow="other"),
    ]
    assert side.open().checks.read(head).state is CheckState.FAILURE
    assert side.open().observe().pulls[0].check.state is CheckState.FAILURE


@pytest.mark.parametrize(
    "said", ["", "Pipeline was canceled", "Pipeline was rejected", "unknown status"]
)
def test_a_cancelled_job_says_nothing_of_the_commit(side: RemoteSide, said: str) -> None:
    """Its status is a failure, and only the description tells."""
    _, head = opened(side)
    if said:
        side.state.runs = []
        side.state.statuses.append(Status(9, head, "ci/woodpecker", "failure", 1.0, said))
    else:
        side.state.runs[0].word = "cancelled"
    assert side.open().observe().pulls[0].check.state is CheckState.BROKEN
    assert side.open().checks.read(head).state is CheckState.BROKEN


def test_a_status_that_cannot_be_read_costs_no_other_one(side: RemoteSide) -> None:
    """And of the commit it is not known whether it has passed."""
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    assert side.open().checks.read(head).state is CheckState.SUCCESS
    bad = Status(9, head, "odd", "success", 1.0)
    bad.context = None  # type: ignore[assignment]
    side.state.statuses.append(bad)
    assert side.open().observe().pulls[0].check.state is CheckState.PENDING
    side.finish(head, CheckState.FAILURE)
    assert side.open().observe().pulls[0].check.state is CheckState.FAILURE
    side.dialect.description.problems.clear()  # no server does this


@pytest.mark.parametrize("is_agit", [False, True])
def test_what_a_pull_request_of_others_runs_on_our_commit_says_nothing(
    side: RemoteSide, is_agit: bool
) -> None:
    """Everybody can offer the same commit, and its status takes the place of ours."""
    number, head = opened(side)
    theirs = Pull("fix/1", "main", head, "" if is_agit else "mallory", is_agit=is_agit)
    forked = side.state.add("Mine", "", "mallory", theirs)
    now, name = time.time(), "CI / test (pull_request)"
    ours = Run(1, head, name, "failure", now, log="ours\n", job="test")
    last = Run(9, head, name, "success", now + 9)
    side.state.runs = [ours, last]
    dialect_of(side).begun_by = {1: number, 9: forked.number}
    for word, others, state in (
        ("failure", "success", CheckState.FAILURE),
        ("success", "failure", CheckState.SUCCESS),
        ("success", "", CheckState.SUCCESS),
        ("", "success", CheckState.PENDING),
    ):
        ours.word, last.word = word, others
        found = side.open().checks.read(head)
        assert (found.state, found.log) == (state, "ours\n" if word == "failure" else "")
        [pull] = [one for one in side.open().observe().pulls if one.number == number]
        assert pull.check.state is state
    ours.word, last.word = "failure", ""
    side.open().checks.rerun(head)
    assert len(side.state.reruns) == 1, "only ours, and it does not wait for theirs"


def test_what_others_run_is_told_by_the_tasks_where_runs_are_the_owners_alone(
    side: RemoteSide,
) -> None:
    number, head = opened(side)
    forked = side.state.add("Mine", "", "mallory", Pull("fix/1", "main", head, "mallory"))
    now, name = time.time(), "CI / test (pull_request)"
    others = [Run(1000 + one, f"{one:040x}", "CI / x (push)", "success", now) for one in range(70)]
    ours = Run(1, head, name, "failure", now, log="ours\n", job="test")
    side.state.runs = [ours, Run(9, head, name, "success", now + 9), *others]
    dialect_of(side).begun_by = {1: number, 9: forked.number}
    dialect_of(side).tells_runs = False
    found = side.open().checks.read(head)
    assert found.state is CheckState.FAILURE
    assert "user should be the owner of the repo" in found.log
    assert "an account that owns the repository" in found.log


def test_the_log_of_a_public_repository_comes_from_its_page(side: RemoteSide) -> None:
    """Where the interface gives it to the owner alone, as on Gitea, or not at all."""
    _, head = opened(side)
    side.state.runs = [Run(1, head, "CI / test (push)", "failure", time.time(), log="it broke\n")]
    dialect_of(side).is_public = True
    dialect_of(side).tells_runs = False
    assert side.open().checks.read(head).log == "it broke\n"
    dialect_of(side).tells_runs = True
    none = Fault(part="/api/v1/repos/harbor/harb/actions/runs/", reply=Reply(404), times=9)
    side.site.faults = [none]
    assert side.open().checks.read(head).log == "it broke\n", "Forgejo 12 has no list of jobs"
    page = [one for one in side.site.asked if one.path.endswith("/jobs/0/logs")]
    assert not any("authorization" in one.headers for one in page)


@pytest.mark.parametrize(
    "url", ["https://evil.example/a/actions/runs/1/jobs/0", "/a/actions/runs/1"]
)
def test_a_log_comes_from_no_other_server_and_no_other_page(side: RemoteSide, url: str) -> None:
    """Whoever may write a status sets its address."""
    _, head = opened(side)
    dialect_of(side).is_public = True
    dialect_of(side).tells_runs = False
    status = Status(9, head, "CI / test (push)", "failure", time.time())
    status.url = url
    side.state.statuses.append(status)
    assert "user should be the owner" in side.open().checks.read(head).log


@pytest.mark.parametrize(
    ("status", "words", "kind", "said"),
    [
        (405, "The head branch is behind the base branch", MergeRefusedError, "rebase it and push"),
        (
            405,
            "not allowed to merge [reason: The head branch is behind the base branch]",
            MergeRefusedError,
            "rebase it and push",
        ),
        (
            409,
            "PushRejected with remote message: error: cannot lock ref 'refs/heads/main'",
            BaseMovedError,
            "cannot be merged yet",
        ),
    ],
)
def test_words_of_real_servers_at_a_merge_lead_to_what_helps(
    side: RemoteSide, status: int, words: str, kind: type[Exception], said: str
) -> None:
    """Of Gitea 1.26.0-dev and Forgejo 12.0.0-dev."""
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    refusal = Fault(part="/merge", method="POST", reply=Reply(status, {"message": words}))
    side.site.faults = [refusal]
    with pytest.raises(kind, match=said):
        side.open().pulls.merge(number, head=head, author=BOT)


@pytest.mark.parametrize(
    "login",
    [
        Reply(303, raw=b"See Other", headers={"Location": "/user/login"}),
        Reply(200, raw=b"<html>Sign in</html>", headers={"Content-Type": "text/html"}),
    ],
)
def test_a_server_that_wants_a_login_delays_no_failure(side: RemoteSide, login: Reply) -> None:
    _, head = opened(side)
    side.state.runs = [Run(1, head, "CI / test (push)", "failure", time.time(), log="it broke\n")]
    dialect_of(side).tells_runs = False
    side.site.faults = [Fault(part="/jobs/0/logs", reply=login)]
    assert "user should be the owner" in side.open().checks.read(head).log
    assert len([one for one in side.site.asked if one.path.endswith("/jobs/0/logs")]) == 1


def test_doctor_says_that_an_account_gets_no_logs(side: RemoteSide) -> None:
    forge = side.open_as(BOT)
    assert isinstance(forge, Limited)
    assert not list(forge.find_limits())
    dialect_of(side).tells_runs = False
    [limit] = forge.find_limits()
    assert limit.startswith("the account does not own the repository")


def test_a_step_is_not_named_where_all_are_said_to_have_failed() -> None:
    """Gitea says of each step what became of its job: the first one would be taken to blame."""
    clone, test = StepShape("clone", "failure"), StepShape("test", "failure")
    passed = StepShape("clone", "success")
    assert name_step(JobShape(1, steps=[clone, test])) == ""
    assert name_step(JobShape(1, steps=[passed, test])) == "test"
    assert name_step(JobShape(1, steps=[test])) == "test"


def test_the_last_of_two_verdicts_of_one_second_counts(side: RemoteSide) -> None:
    number, head = opened(side)
    pull = side.state.entries[number].pull
    assert pull
    now = time.time()
    for ident, state in ((1, "CHANGES_REQUESTED"), (2, "APPROVED")):
        pull.reviews.append(Opinion(ident, "rita", state, "text", head, now))
    side.admit("rita")
    shown = side.open().pulls.read(number)
    assert [one.state for one in shown.reviews] == [ReviewState.COMMENTED, ReviewState.APPROVED]


def test_a_server_that_does_not_say_what_has_run_is_believed(side: RemoteSide) -> None:
    _, head = opened(side)
    side.state.runs = [Run(1, head, "CI / test (pull_request)", "success", 1.0)]
    side.site.faults = [Fault(part="/actions/runs", reply=Reply(404), times=9)]
    assert side.open().checks.read(head).state is CheckState.SUCCESS


def test_the_address_of_a_job_is_a_whole_one(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.FAILURE, "unit")
    url = side.open().observe().pulls[0].check.url
    assert url == f"{side.site.url}/harbor/harb/actions/runs/{side.state.runs[0].id}/jobs/0"


# Labels


def test_a_label_of_the_organisation_is_taken_off_and_not_made_anew(side: RemoteSide) -> None:
    dialect_of(side).org_labels = ["backlog", "in-progress", "blocked"]
    project, url = side.project, "ssh://git@code.example.com/harbor/harb.git"
    assert list(kind_of(project.forge).find_problems(project, url)) == []
    made = side.open().issues.add("a", labels=["backlog"], author="ada").number
    assert side.open().issues.add_label(made, "in-progress").labels == ("backlog", "in-progress")
    assert [one.number for one in side.open().issues.find(labels=["backlog"])[0]] == [made]
    assert side.open().issues.remove_label(made, "backlog").labels == ("in-progress",)
    assert side.state.entries[made].labels == ["in-progress"]
    assert side.state.labels == [], "none was made"


def test_a_label_that_both_have_is_the_one_that_the_issue_has(side: RemoteSide) -> None:
    dialect_of(side).org_labels = ["backlog"]
    made = side.open().issues.add("a", labels=["backlog"], author="ada").number
    ours = side.open().issues.add("b", author="ada").number
    asked = len(side.site.asked)
    side.open().issues.remove_label(made, "backlog")
    assert side.site.lines(asked)[-1].endswith("/labels/900")
    assert side.open().issues.add_label(ours, "backlog").labels == ("backlog",)


# Pull requests


def test_an_empty_pull_request_is_not_opened(side: RemoteSide) -> None:
    git(side.hub.repository.clone, "push", "-q", "origin", "main:refs/heads/fix/2")
    with pytest.raises(NothingToMergeError):
        side.open().pulls.open("fix/2", "main", "a", author=BOT)
    assert not list(side.state.pulls())


def test_what_a_commit_changes_is_known_by_a_comparison(side: RemoteSide) -> None:
    number, head = opened(side)
    side.hub.push("fix/1", "more.txt")
    forge = side.open()
    assert forge.pulls.list_files(number, head) == ["fix-1.txt"]


@pytest.mark.parametrize("has_branch", [True, False])
def test_what_was_pushed_to_refs_for_is_none_of_ours(side: RemoteSide, has_branch: bool) -> None:
    """User `fix` with the topic `1`: a list even has the name of our branch, if there is one."""
    theirs = side.hub.push("fix/1" if has_branch else "else/1")
    made = side.state.add("Mine", "", "fix", Pull("fix/1", "main", theirs, is_agit=True))
    [pull] = side.open().observe().pulls
    assert pull.branch == f"fix:refs/pull/{made.number}/head"
    assert side.open().pulls.find_newest("fix/1") is None
    with pytest.raises(MergeRefusedError, match="of a fork"):
        side.open().pulls.merge(made.number, author=BOT)
    side.hub.push("fix/1", "more.txt")
    ours = side.open().pulls.open("fix/1", "main", "ours", author=BOT).number
    assert ours != made.number
    assert [one.branch for one in side.open().observe().pulls if one.number == ours] == ["fix/1"]


def test_a_merge_that_waits_for_a_dependency_says_so(side: RemoteSide) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    first = side.open().issues.add("a", author="ada").number
    dialect_of(side).waits_for[number] = [first]
    began = time.monotonic()
    with pytest.raises(MergeRefusedError, match=f"it depends on #{first}, still open"):
        side.open().pulls.merge(number, head=head, author=BOT)
    assert time.monotonic() - began < 5
    side.open().issues.close(first)
    assert side.open().pulls.merge(number, head=head, author=BOT).state is PullState.MERGED


# Reviews


def test_only_approvals_that_the_forge_counts_are_counted(side: RemoteSide) -> None:
    side.state.approvals = 1
    side.admit("rita")
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.open().pulls.review(number, ReviewState.APPROVED, author="mallory")
    assert side.open().observe().pulls[0].hold is Hold.BLOCKED
    side.open().pulls.review(number, ReviewState.APPROVED, author="rita")
    assert side.open().observe().pulls[0].hold is Hold.NONE
    dialect_of(side).asked_again[number] = ["rita"]
    [pull] = side.open().observe().pulls
    assert (pull.hold, "0 are there" in pull.held) == (Hold.BLOCKED, True)


def test_a_review_that_is_asked_for_is_none(side: RemoteSide) -> None:
    number, _ = opened(side)
    dialect_of(side).asked_again[number] = ["rita", ""]
    assert side.open().pulls.read(number).reviews == ()
    side.open().pulls.review(number, ReviewState.CHANGES_REQUESTED, "No.", author="otto")
    assert [one.author for one in side.open().pulls.read(number).reviews] == ["otto"]


def test_a_remark_on_a_line_that_was_removed_has_that_line(side: RemoteSide) -> None:
    number, _ = opened(side)
    remarks = [InlineComment("work.txt", 3, "why?")]
    side.open().pulls.review(number, ReviewState.COMMENTED, "", remarks, author="rita")
    pull = side.state.entries[number].pull
    assert pull
    pull.inline[0].is_old_side = True
    [review] = side.open().pulls.read(number).reviews
    assert [(one.line, one.outdated) for one in review.comments] == [(3, False)]


def test_an_edited_review_is_found_behind_many_remarks(side: RemoteSide) -> None:
    """A timeline is in pages, each of which counts only itself."""
    number, _ = opened(side)
    remarks = [InlineComment("work.txt", line, f"remark {line}") for line in range(1, 5)]
    side.open().pulls.review(number, ReviewState.CHANGES_REQUESTED, "Old.", remarks, author="rita")
    for text in ("one", "two", "three", "four"):
        side.open().pulls.comment(number, text, author="ada")
    pull = side.state.entries[number].pull
    assert pull
    side.state.edit_review(pull, "rita", "Old.", "New.")
    assert side.open().pulls.read(number).reviews[0].body == "New."


# One bad entry


def test_a_comment_that_cannot_be_read_costs_no_other_one(side: RemoteSide) -> None:
    forge = side.open()
    number = forge.issues.add("a", author="ada").number
    for text in ("bad", "good"):
        forge.issues.comment(number, text, author="ada")
    side.state.entries[number].comments[0].body = 7  # type: ignore[assignment]
    assert [one.body for one in forge.issues.read(number).comments] == ["good"]
    side.dialect.description.problems.clear()  # no server does this
