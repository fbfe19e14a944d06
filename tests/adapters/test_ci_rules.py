"""What a forge asks for before a merge: required checks, what holds a merge, the merge queue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.forge.errors import (
    ChecksNotPassedError,
    MergeRefusedError,
    QueueUnknownError,
)
from sm.adapters.forge.model import (
    BOT,
    Batch,
    CheckState,
    Hold,
    InlineComment,
    PullState,
    ReviewState,
)
from sm.plugins.forges.web.errors import LimitedError
from tests.forges.github import Github
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, remote_side
from tests.forges.state import Pull, Run
from tests.hub import make_hub

RULES = [
    {
        "type": "required_status_checks",
        "parameters": {
            "required_status_checks": [{"context": "unit"}],
            "strict_required_status_checks_policy": True,
        },
    },
    {
        "type": "pull_request",
        "parameters": {
            "required_approving_review_count": 2,
            "require_code_owner_review": True,
            "dismiss_stale_reviews_on_push": False,
            "require_last_push_approval": False,
            "required_review_thread_resolution": False,
        },
    },
]


@pytest.fixture(params=["github", "forgejo", "gitea"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side(request.param, make_hub(tmp_path), tmp_path / "kept") as side:
        yield side


ON_GITHUB = pytest.mark.parametrize("side", ["github"], indirect=True)
ON_FORGEJO = pytest.mark.parametrize("side", ["forgejo"], indirect=True)


def opened(side: RemoteSide) -> tuple[int, str]:
    """A pull request without any check, with its number and commit."""
    head = side.hub.push("fix/1")
    return side.open().pulls.open("fix/1", "main", "a", author=BOT).number, head


def ran(side: RemoteSide, head: str, name: str, word: str = "success") -> None:
    """A check of that name has come to its end, or is at work if `word` is empty."""
    run = side.state.run_of(head, name)
    run.word, run.at = word, time.time()


def age(side: RemoteSide, seconds: float = 60) -> None:
    """Let time pass on the forge."""
    ahead = side.state.clock() - time.time() + seconds
    side.state.clock = lambda: time.time() + ahead


# Required checks


def test_the_verdict_is_that_of_the_required_checks(side: RemoteSide) -> None:
    side.state.protected = ["unit", "build"]
    _, head = opened(side)
    ran(side, head, "unit")
    ran(side, head, "lint", "failure")
    forge = side.open()
    since = forge.observe()
    check = since.pulls[0].check
    assert (check.state, check.missing, check.optional) == (
        CheckState.PENDING,
        ("build",),
        ("lint",),
    )
    ran(side, head, "build", "")
    since = forge.observe(since)
    assert (since.pulls[0].check.state, since.pulls[0].check.missing) == (CheckState.PENDING, ())
    ran(side, head, "build")
    [pull] = forge.observe(since).pulls
    assert (pull.check.state, pull.check.optional) == (CheckState.SUCCESS, ("lint",))
    ran(side, head, "build", "failure")
    found = forge.checks.read(head)
    assert (found.state, found.step.partition(":")[0]) == (CheckState.FAILURE, "build")
    with pytest.raises(ChecksNotPassedError):
        forge.pulls.merge(pull.number, author=BOT)


def test_a_branch_without_rules_wants_every_check(side: RemoteSide) -> None:
    _, head = opened(side)
    ran(side, head, "unit")
    ran(side, head, "lint", "failure")
    assert side.open().observe().pulls[0].check.state is CheckState.FAILURE


@ON_FORGEJO
def test_a_required_status_may_be_a_pattern(side: RemoteSide) -> None:
    side.state.protected = ["ci/*"]
    _, head = opened(side)
    ran(side, head, "lint", "failure")
    assert side.open().observe().pulls[0].check.missing == ("ci/*",)
    ran(side, head, "ci/unit (push)")
    assert side.open().observe().pulls[0].check.state is CheckState.SUCCESS


@ON_GITHUB
def test_rulesets_count_beside_the_protection_of_the_branch(side: RemoteSide) -> None:
    side.state.protected, side.state.rules = ["build"], RULES
    _, head = opened(side)
    ran(side, head, "build")
    assert side.open().observe().pulls[0].check.missing == ("unit",)


def test_who_may_not_read_the_rules_goes_without(side: RemoteSide) -> None:
    side.state.protected = ["build"]
    _, head = opened(side)
    ran(side, head, "unit")
    parts = ("/rules/", "GET /repos/harbor/harb/branches/main", "GET /api/v1/repos/harbor/harb/br")
    side.site.faults = [Fault(part=part, reply=Reply(403), times=9) for part in parts]
    assert side.open().observe().pulls[0].check.state is CheckState.SUCCESS


@ON_GITHUB
def test_rules_are_read_anew_with_the_rest_and_free_while_they_stay(side: RemoteSide) -> None:
    opened(side)
    forge = side.open()
    since = forge.observe()
    asked = len(side.site.asked)
    forge.observe(since)
    forge.observe()
    rules = [one for one in side.site.asked[asked:] if "branches/main" in one.path]
    assert len(rules) == 2
    assert all("if-none-match" in one.headers for one in rules)
    side.state.protected = ["build"]
    assert side.open().observe().pulls[0].check.missing == ("build",)


@ON_GITHUB
def test_a_hundred_pull_requests_with_required_checks_are_one_query(side: RemoteSide) -> None:
    side.state.protected = ["build"]
    head = side.state.repository.heads()["main"]
    for number in range(70):
        side.state.add(f"t{number}", "", BOT, Pull(f"fix/{number}", "main", head))
    side.state.runs.append(Run(1, head, "lint", "", time.time()))
    age(side)
    since = side.open().observe()
    asked = len(side.site.asked)
    side.open().observe(since)
    assert [one.method for one in side.site.asked[asked:]] == ["GET", "POST"]


# What holds a merge


@ON_GITHUB
def test_what_github_says_of_a_merge_is_known_before_one_is_tried(side: RemoteSide) -> None:
    side.state.rules = RULES
    number, head = opened(side)
    ran(side, head, "unit")
    pull = side.state.entries[number].pull
    assert pull
    pull.merge_state, pull.decision = "BLOCKED", "REVIEW_REQUIRED"
    [seen] = side.open().observe().pulls
    assert seen.hold is Hold.BLOCKED
    assert seen.held == (
        "it waits for an approval that the rules of the branch ask for "
        "(2 in all, one by an owner of the code)"
    )
    pull.merge_state = "BEHIND"
    [seen] = side.open().observe().pulls
    assert (seen.hold, seen.held) == (Hold.BEHIND, "the branch is behind 'main'")
    pull.merge_state = "CLEAN"
    assert side.open().observe().pulls[0].hold is Hold.NONE


@ON_FORGEJO
def test_approvals_that_the_branch_wants_are_counted(side: RemoteSide) -> None:
    side.state.approvals = 2
    side.admit("rita", "otto")
    number, head = opened(side)
    ran(side, head, "unit")
    side.open().pulls.review(number, ReviewState.APPROVED, author="rita")
    [seen] = side.open().observe().pulls
    assert seen.hold is Hold.BLOCKED
    assert "wants 2, and 1 are there" in seen.held
    with pytest.raises(MergeRefusedError, match="enough approvals"):
        side.open().pulls.merge(number, author=BOT)
    side.open().pulls.review(number, ReviewState.APPROVED, author="otto")
    assert side.open().observe().pulls[0].hold is Hold.NONE


# The merge queue


def queued(side: RemoteSide) -> tuple[int, Batch]:
    """A pull request that was put into the queue, and the look after that."""
    side.state.has_queue = True
    number, head = opened(side)
    ran(side, head, "unit")
    age(side)
    since = side.open().observe()
    made = side.open().pulls.merge(number, head=head, author=BOT)
    assert made.hold is Hold.QUEUED
    return number, side.open().observe(since)


@ON_GITHUB
def test_where_there_is_a_queue_it_merges(side: RemoteSide) -> None:
    number, seen = queued(side)
    assert seen.pulls[0].hold is Hold.QUEUED
    assert seen.pulls[0].held == "it is in the merge queue, at place 1 (awaiting checks)"
    again = side.open().pulls.merge(number, author=BOT)
    assert again.hold is Hold.QUEUED, "a second try finds it there"
    mutations = [one for one in side.site.asked if b"enqueuePullRequest" in one.body]
    assert len(mutations) == 1
    entry = side.state.entries[number]
    assert entry.pull
    entry.pull.place = 0
    side.state.merge(entry, "Merge", "queue")
    assert side.open().observe(seen).pulls[0].merged_as == entry.pull.merged_as


@ON_GITHUB
def test_without_graphql_no_merge_queue_is_passed_by(side: RemoteSide) -> None:
    number, head = opened(side)
    ran(side, head, "unit")
    assert isinstance(side.dialect, Github)
    side.dialect.has_graphql = False
    with pytest.raises(QueueUnknownError, match="cannot learn whether 'main' has a merge queue"):
        side.open().pulls.merge(number, head=head, author=BOT)
    assert not [line for line in side.site.lines() if line.startswith("PUT")]
    side.dialect.has_graphql = True
    said = {"message": "Field 'isMergeQueueEnabled' doesn't exist on type 'PullRequest'"}
    side.site.faults = [Fault(part="/graphql", reply=Reply(data={"errors": [said]}))]
    assert side.open().pulls.merge(number, head=head, author=BOT).state is PullState.MERGED


@ON_GITHUB
def test_a_limit_is_waited_for_before_a_merge_queue_is_known(side: RemoteSide) -> None:
    number, head = opened(side)
    ran(side, head, "unit")
    limit = Reply(403, headers={"retry-after": "60"})
    side.site.faults = [Fault(part="/graphql", times=9, reply=limit)]
    with pytest.raises(LimitedError):
        side.open().pulls.merge(number, head=head, author=BOT)


@ON_GITHUB
def test_why_the_queue_has_dropped_it_is_told(side: RemoteSide) -> None:
    number, seen = queued(side)
    pull = side.state.entries[number].pull
    assert pull
    pull.place, pull.dropped = 0, "failed checks"
    assert side.open().observe(seen).pulls[0].hold is Hold.NONE, "though no list shows it"
    words = "it was removed from the merge queue: failed checks"
    assert side.open().pulls.read(number).held == words


@ON_GITHUB
def test_what_github_does_not_queue_is_a_refusal(side: RemoteSide) -> None:
    side.state.has_queue = True
    number, head = opened(side)
    ran(side, head, "unit")
    pull = side.state.entries[number].pull
    assert pull
    pull.merge_state = "BLOCKED"
    with pytest.raises(MergeRefusedError, match="not mergeable"):
        side.open().pulls.merge(number, author=BOT)


# Reviews


def test_remarks_come_with_their_code_and_settled_ones_are_left_out(side: RemoteSide) -> None:
    side.push("fix/1", content="one\ntwo\nthree\n")
    number = side.open().pulls.open("fix/1", "main", "a", author=BOT).number
    remarks = [InlineComment("work.txt", line, f"remark {line}") for line in (1, 2, 3)]
    wish = ReviewState.CHANGES_REQUESTED
    side.open().pulls.review(number, wish, "Not yet.", remarks, author="rita")
    pull = side.state.entries[number].pull
    assert pull
    pull.inline[1].resolved = pull.inline[2].outdated = True
    [review] = side.open().pulls.read(number).reviews
    is_told = side.kind == "github"  # Forgejo and Gitea do not say so
    assert [(one.line, one.outdated) for one in review.comments] == [(1, False), (3, is_told)]
    assert review.comments[0].hunk.endswith("+line 1 of work.txt")


# CI that has failed itself


@ON_GITHUB
@pytest.mark.parametrize(
    ("steps", "notes", "outage"),
    [
        (None, [], ""),
        ([], [], "unit ended before its first step"),
        (
            None,
            ["The hosted runner lost communication with the server."],
            "The hosted runner lost communication with the server.",
        ),
    ],
)
def test_a_job_whose_runner_is_to_blame_is_told_from_one_that_failed(
    side: RemoteSide, steps: list[tuple[str, str]] | None, notes: list[str], outage: str
) -> None:
    _, head = opened(side)
    ran(side, head, "unit", "failure")
    side.state.runs[0].steps, side.state.runs[0].notes = steps, notes
    found = side.open().checks.read(head)
    assert found.outage == outage
    if steps is None:
        assert found.step == "unit: Run tests"
    assert not notes or notes[0] in found.log, "there is no log of it"


def test_the_whole_log_is_in_a_file_and_the_last_ones_are_kept(
    side: RemoteSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sm.plugins.forges.rest.state.LOGS", 2)
    for number in range(3):
        head = side.push("fix/1", content=f"{number}\n")
        log = "".join(f"\x1b[32mline {line} of {number}\x1b[0m\n" for line in range(500))
        side.finish(head, CheckState.FAILURE, "unit", log)
        found = side.open().checks.read(head)
        assert len(found.log.splitlines()) == 200
        kept = Path(found.file).read_text().splitlines()
        assert kept == [f"line {line} of {number}" for line in range(500)]
        assert Path(found.file).stat().st_mode & 0o077 == 0
    assert len(list((side.folder / "ci-logs").iterdir())) == 2
