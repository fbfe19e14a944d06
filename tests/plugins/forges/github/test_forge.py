"""GitHub alone: what an observation costs, checks of all kinds, forks, reviews, renamed, faults."""

from __future__ import annotations

import time

import pytest
from msgspec import structs

from sm.adapters.forge.errors import (
    AtWorkError,
    MergeRefusedError,
    NotApprovedError,
    NotFoundError,
    UnreachableError,
)
from sm.adapters.forge.kinds import kind_of, open_forge
from sm.adapters.forge.model import (
    BOT,
    CheckState,
    InlineComment,
    IssueState,
    PullState,
    ReviewState,
)
from sm.adapters.forge.protocol import list_signs
from sm.base.errors import TemporaryError, UsageError
from sm.plugins.forges.github import observation
from sm.plugins.forges.github.graphql.client import NoGraphqlError, QueryError, find_graphql
from sm.plugins.forges.settings import GithubSettings
from sm.plugins.forges.web.errors import TokenRefusedError
from sm.plugins.forges.web.ledger import read_book
from tests.forges import hour
from tests.forges.server import Asked, Fault, Reply
from tests.forges.sides import RemoteSide, age, asked_for, github_of, opened
from tests.forges.state import Pull, Run, Status

# What an observation costs


def test_where_nothing_has_happened_one_request_is_free(side: RemoteSide) -> None:
    side.open().issues.add("a", author="ada")
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    age(side)
    since = side.open().observe()
    used = dict(github_of(side).used)
    seen, lines = asked_for(side, since)
    assert lines == ["GET /issues"]
    assert github_of(side).used == used
    assert structs.replace(seen, validators={}) == structs.replace(since, validators={})
    assert seen.validators["etag"] == since.validators["etag"]
    book = read_book(side.folder / "quota.json")
    assert book.by_session()["", "observe"].unchanged == 1
    assert book.limits["core"].left <= 5000
    assert number


def test_a_hundred_pull_requests_that_wait_for_checks_are_one_query(side: RemoteSide) -> None:
    heads = side.state.repository.heads()
    for number in range(70):
        side.state.add(f"t{number}", "", BOT, Pull(f"fix/{number}", "main", heads["main"]))
    age(side)
    since = side.open().observe()
    assert len(since.pulls) == 70
    assert {pull.check.state for pull in since.pulls} == {CheckState.PENDING}
    _, lines = asked_for(side, since)
    assert lines == ["GET /issues", "POST /graphql"]


def test_an_entry_of_this_second_keeps_no_validator(side: RemoteSide) -> None:
    """A second change within it would not change the ETag."""
    side.open().issues.add("a", author="ada")
    assert side.open().observe().validators["etag"] == ""
    age(side)
    assert side.open().observe().validators["etag"]


def test_a_validator_of_another_token_is_not_used(side: RemoteSide) -> None:
    side.open().issues.add("a", author="ada")
    age(side)
    since = side.open().observe()
    side.token_file(BOT).write_text("another-token-0815")
    side.state.tokens["another-token-0815"] = BOT
    side.open().observe(since)
    assert "if-none-match" not in side.site.asked[-2].headers


def test_only_what_has_changed_is_read_page_by_page(
    side: RemoteSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observation, "PAGE", 2)
    for title in "abcde":
        side.open().issues.add(title, author="ada")
        age(side, 10)
    since = side.open().observe()
    assert [issue.title for issue in since.issues] == list("abcde")
    age(side)
    for number in (1, 2, 3):
        side.open().issues.add_label(number, "x")
        age(side, 10)
    seen, lines = asked_for(side, since)
    assert [issue.number for issue in seen.issues if issue.labels] == [1, 2, 3]
    assert set(lines) == {"GET /issues"}


def test_what_depends_on_an_issue_that_was_closed_long_ago_is_known(side: RemoteSide) -> None:
    first = side.open().issues.add("a", author="ada").number
    side.open().issues.close(first)
    age(side, 90 * 86400)
    side.open().issues.add("b", f"Depends on #{first}", ["backlog"], author="ada")
    found = {issue.number: issue.state for issue in side.open().observe().issues}
    assert found[first] is IssueState.CLOSED


def test_many_strangers_are_not_asked_for_at_each_look(side: RemoteSide) -> None:
    for number in range(510):
        side.state.add("a", "", f"stranger{number}")
    age(side)
    since = side.open().observe()
    since, _ = asked_for(side, since)
    assert asked_for(side, since)[1] == ["GET /issues"]


def test_without_graphql_a_look_fails_and_says_what_is_needed(side: RemoteSide) -> None:
    """A GitHub Enterprise may have none, or a token that may not use it."""
    opened(side)
    refusal = Reply(404, {"message": "Not Found"})
    side.site.faults = [Fault(part="/graphql", reply=refusal)]
    before = len(side.site.asked)
    with pytest.raises(NoGraphqlError, match=r"\(404 Not Found\): sm reads GitHub by GraphQL"):
        side.open().observe()
    assert not [line for line in side.site.lines(before) if "/pulls/" in line]


def test_a_server_that_is_too_old_is_named_with_the_version_that_is_needed(
    side: RemoteSide,
) -> None:
    opened(side)
    said = {"message": "Field 'isInMergeQueue' doesn't exist on type 'PullRequest'"}
    side.site.faults = [Fault(part="/graphql", reply=Reply(data={"errors": [said]}))]
    with pytest.raises(NoGraphqlError, match=r"'isInMergeQueue' doesn't exist.*from 3\.13 on"):
        side.open().observe()


def test_a_pull_request_that_graphql_did_not_find_out_in_time_costs_no_other(
    side: RemoteSide,
) -> None:
    number, head = opened(side)
    other, _ = opened(side, "fix/2")
    side.finish(head, CheckState.SUCCESS)
    age(side)
    since = side.open().observe()
    for one in (number, other):
        side.open().pulls.review(one, ReviewState.COMMENTED, "Well.", author="rita")
    age(side, 60)
    respond = side.site.respond
    late = {"message": "Something went wrong while executing your query."}

    def drop(asked: Asked) -> Reply:
        reply = respond(asked)
        if asked.path != "/graphql":
            return reply
        path, found = ["repository", f"p{number}"], reply.data["data"]["repository"]
        if path[1] not in found:
            return reply
        found = {**found, path[1]: None}
        data = {**reply.data["data"], "repository": found}
        return Reply(data={"data": data, "errors": [late | {"path": path}]})

    side.site.respond = drop
    seen = side.open().observe(since)
    assert [pull.number for pull in seen.pulls] == [number, other]
    assert any(f"number {number} is passed over" in one for one in seen.problems)
    side.site.respond = respond
    seen = side.open().observe(seen)
    assert len(seen.pulls[0].reviews) == 1, "asked for again at the next look"


def test_a_look_fails_if_graphql_has_found_out_nothing_in_time(side: RemoteSide) -> None:
    opened(side)
    said, nothing = "Something went wrong while executing your query.", {"p1": None, "p2": None}
    faults = [{"message": said, "path": ["repository", alias]} for alias in nothing]
    late = {"data": {"rateLimit": {"cost": 1}, "repository": nothing}, "errors": faults}
    side.site.faults = [Fault(part="/graphql", reply=Reply(data=late))]
    with pytest.raises(QueryError):
        side.open().observe()


# Checks


@pytest.mark.parametrize(
    ("runs", "statuses", "state", "step"),
    [
        ([], [], CheckState.PENDING, ""),
        (["success"], [], CheckState.SUCCESS, ""),
        (["success", ""], [], CheckState.PENDING, ""),
        (["success", "failure"], ["pending"], CheckState.FAILURE, "job1"),
        (["success", "skipped", "neutral"], ["success"], CheckState.SUCCESS, ""),
        ([], ["success", "failure"], CheckState.FAILURE, "ci1"),
        ([], ["error"], CheckState.FAILURE, "ci0"),
        (["success"], ["pending"], CheckState.PENDING, ""),
        (["cancelled", "success"], [], CheckState.BROKEN, "job0"),
        (["cancelled", "timed_out"], [], CheckState.FAILURE, "job1"),
        (["failure", "failure"], [], CheckState.FAILURE, "job0, job1"),
    ],
)
def test_statuses_and_check_runs_are_combined(
    side: RemoteSide,
    runs: list[str],
    statuses: list[str],
    state: CheckState,
    step: str,
) -> None:
    side.hub.push("fix/1")
    head = side.open().pulls.open("fix/1", "main", "a", author=BOT).head
    for at, word in enumerate(runs):
        side.state.runs.append(Run(at + 1, head, f"job{at}", word, time.time()))
    for at, word in enumerate(statuses):
        side.state.statuses.append(Status(at + 1, head, f"ci{at}", word, time.time()))
    [pull] = side.open().observe().pulls
    assert (pull.check.state, pull.check.step, pull.check.head) == (state, step, head)


def test_two_workflows_may_have_a_job_of_one_name(side: RemoteSide) -> None:
    side.hub.push("fix/1")
    head = side.open().pulls.open("fix/1", "main", "a", author=BOT).head
    side.state.runs += [
        Run(1, head, "test", "failure", time.time() - 60, workflow="old"),
        Run(2, head, "test", "success", time.time(), workflow="new"),
    ]
    assert side.open().observe().pulls[0].check.state is CheckState.FAILURE
    assert side.open().checks.read(head).state is CheckState.FAILURE


def test_a_check_that_passes_in_another_run_on_the_same_commit_has_passed(side: RemoteSide) -> None:
    """The check of a title, which was mended."""
    side.hub.push("fix/1")
    pull = side.open().pulls.open("fix/1", "main", "a", author=BOT)
    side.state.runs += [
        Run(1, pull.head, "title", "failure", time.time() - 60),
        Run(2, pull.head, "title", "success", time.time(), again=1),
    ]
    assert side.open().observe().pulls[0].check.state is CheckState.SUCCESS
    assert side.open().pulls.merge(pull.number, author=BOT).state is PullState.MERGED


def test_a_project_without_ci_needs_no_check(side: RemoteSide) -> None:
    settings = structs.replace(side.project.forge, has_ci=False)
    side.hub.push("fix/1")
    forge = open_forge(structs.replace(side.project, forge=settings), None, side.folder)
    forge.pulls.open("fix/1", "main", "a", author=BOT)
    assert forge.observe().pulls[0].check.state is CheckState.NONE


def test_a_log_ends_with_its_failure_and_has_neither_colours_nor_secrets(side: RemoteSide) -> None:
    _, head = opened(side)
    secret = "ghp_" + "a1" * 18
    said = [f"line {number}" for number in range(500)]
    said += ["\x1b[31mE  boom\x1b[0m", f"token={secret}", "##[error]exit code 1"]
    said += [f"cleaning up {number}" for number in range(50)]
    side.finish(head, CheckState.FAILURE, "test", "\n".join(said) + "\n")
    log = side.open().checks.read(head).log
    lines = log.splitlines()
    assert len(lines) <= 200
    assert "E  boom" in lines
    assert lines[-1] == "cleaning up 2"
    assert secret not in log
    assert "2026-01-02T" not in log


def test_a_check_without_a_log_says_what_it_says_itself(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    made = Run(900, head, "lint", "failure", time.time(), app="other", text="3 problems")
    side.state.runs.append(made)
    assert side.open().checks.read(head).log == "3 problems"


def test_failed_jobs_are_run_again(side: RemoteSide) -> None:
    _, head = opened(side)
    with pytest.raises(AtWorkError):
        side.open().checks.rerun(head)
    side.finish(head, CheckState.FAILURE, "test", "no\n")
    side.open().checks.rerun(head)
    assert side.state.reruns == ["rerun-failed-jobs"]
    with pytest.raises(UsageError, match="has not run"):
        side.open().checks.rerun("0" * 40)


# Whose words count


def test_a_pull_request_of_a_fork_is_none_of_ours(side: RemoteSide) -> None:
    head = side.push("fix/1")
    made = side.state.add("Mine", "", "mallory", Pull("fix/1", "main", head, fork="mallory"))
    side.state.run_of(head, "build").word = "success"
    forge = side.open()
    assert [pull.branch for pull in forge.observe().pulls] == ["mallory:fix/1"]
    assert forge.pulls.find_newest("fix/1") is None
    with pytest.raises(MergeRefusedError, match="of a fork"):
        forge.pulls.merge(made.number, author=BOT)
    assert forge.pulls.open("fix/1", "main", "ours", author=BOT).number != made.number


def test_an_app_is_not_taken_for_a_user_of_its_name(side: RemoteSide) -> None:
    side.admit("helper")
    number = side.open().issues.add("a", author="ada").number
    side.state.say(side.state.entries[number], "helper[bot]", "Do it.")
    seen = side.open().observe()
    assert [comment.author for comment in seen.issues[0].comments] == ["helper[bot]"]
    assert seen.writers == ()


def test_a_mark_of_somebody_else_is_no_mark(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    side.open().issues.comment(number, "Forged.\n\n<!-- sm:m1 -->", author="mallory")
    since = side.open().observe()
    assert [comment.marker for comment in since.issues[0].comments] == [""]
    assert side.open().issues.comment(number, "Hello.", author=BOT, marker="m1")
    assert [comment.marker for comment in side.open().issues.read(number).comments] == ["", "m1"]


def test_a_dismissed_review_leaves_its_reviewer_without_a_say(side: RemoteSide) -> None:
    side.admit("rita", "otto")
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    for author in ("rita", "rita", "otto"):
        side.open().pulls.review(number, ReviewState.APPROVED, author=author)
        age(side, 10)
    found = side.state.entries[number].pull
    assert found
    found.reviews[1].state = "DISMISSED"
    for pull in (side.open().observe().pulls[0], side.open().pulls.read(number)):
        standing = [one.author for one in pull.reviews if one.state is ReviewState.APPROVED]
        assert standing == ["otto"]


def test_what_the_project_asks_for_holds_before_a_merge(side: RemoteSide) -> None:
    side.admit("rita")
    project = structs.replace(
        side.project, review=structs.replace(side.project.review, required=True)
    )
    forge = open_forge(project, None, side.folder)
    number, head = opened(side)
    with pytest.raises(AtWorkError):
        forge.pulls.merge(number, author=BOT)
    side.finish(head, CheckState.SUCCESS)
    side.open().pulls.review(number, ReviewState.APPROVED, author="mallory")
    with pytest.raises(NotApprovedError):
        forge.pulls.merge(number, author=BOT)
    side.open().pulls.review(number, ReviewState.APPROVED, author="rita")
    assert forge.pulls.merge(number, author=BOT).state is PullState.MERGED


# Faults


def test_a_merge_whose_answer_is_lost_is_a_merge(side: RemoteSide) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.site.faults = [Fault(part="/merge", drop=True, after=True)]
    assert side.open().pulls.merge(number, head=head, author=BOT).state is PullState.MERGED


def test_a_storm_of_errors_changes_nothing(side: RemoteSide) -> None:
    side.open().issues.add("a", author="ada")
    since = side.open().observe()
    side.site.faults = [Fault(times=99, reply=Reply(500))]
    with pytest.raises(UnreachableError):
        side.open().observe(since)
    side.site.faults = []
    assert side.open().observe(since).issues == since.issues


def test_a_revoked_token_is_told_and_its_successor_is_used(side: RemoteSide) -> None:
    forge = open_forge(side.project, None, side.folder)
    forge.issues.add("a", author=BOT)
    del side.state.tokens["secret-of-sm-4f1d"]
    with pytest.raises(TokenRefusedError, match="does not accept the token"):
        forge.observe()
    side.token_file(BOT).write_text("a-new-token")
    side.state.tokens["a-new-token"] = BOT
    assert forge.observe().issues


def test_a_renamed_repository_is_followed_by_its_id(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    since = side.open().observe()
    side.state.former.append(side.state.name)
    configured, side.state.name = side.project, "harbour/new"
    forge = open_forge(configured, None, side.folder)
    assert forge.observe(since).issues, "before it is known, redirects lead there"
    seen = open_forge(configured, None, side.folder).observe()
    assert seen.issues[0].number == number
    assert side.state.former, "the old name is still configured"


def test_another_repository_of_the_old_name_is_not_taken_for_it(side: RemoteSide) -> None:
    configured = side.project
    open_forge(configured, None, side.folder).observe()
    side.state.name = "harbour/new"
    seen = open_forge(configured, None, side.folder).observe()
    assert any("is called 'harbour/new' now" in problem for problem in seen.problems)
    assert side.site.lines()[-1].startswith("GET /repos/harbour/new/")


def test_a_forge_that_has_not_yet_tried_a_merge_is_asked_again(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    age(side)
    side.state.unsure = True
    since = side.open().observe()
    _, lines = asked_for(side, since)
    assert lines == ["GET /issues", "POST /graphql"]
    side.state.unsure = False
    seen, _ = asked_for(side, since)
    assert seen.validators["unsure"] == ""


# Limits and settings


def test_observations_are_further_apart_when_little_is_left(side: RemoteSide) -> None:
    forge = open_forge(side.project, None, side.folder)
    forge.observe()
    assert forge.pause_s() == 0
    github_of(side).used = {"core": 4000}
    forge.observe()
    assert 0 < forge.pause_s() < 60
    github_of(side).used = {"core": 4600}
    forge.observe()
    assert 1700 < forge.pause_s() <= 1801, "what is left is for writing"
    assert forge.issues.add("still", author=BOT)


def test_our_own_writes_make_the_last_observation_stale(side: RemoteSide) -> None:
    forge = open_forge(side.project, None, side.folder)
    since = forge.observe()
    assert not forge.is_stale(since)
    forge.issues.add("a", author=BOT)
    assert open_forge(side.project, None, side.folder).is_stale(since)
    assert list_signs(forge) == (side.folder / "written",)


def test_what_is_wrong_is_told_in_the_words_of_the_forge(side: RemoteSide) -> None:
    project = side.project

    def problems(url: str = "git@github.com:harbor/harb.git") -> list[str]:
        return list(kind_of(project.forge).find_problems(project, url))

    assert problems() == [
        "'harbor/harb' has no label 'backlog', 'blocked', 'in-progress': make it on the forge, "
        "or set 'labels'"
    ]
    side.state.labels = ["backlog", "blocked", "in-progress"]
    assert problems() == []
    refusal = Reply(403, {"message": "Resource not accessible"})
    side.site.faults = [Fault(part="/graphql", reply=refusal)]
    [said] = problems()
    assert "has no GraphQL that sm can use (403 Resource not accessible): " in said
    side.site.faults = []
    assert problems("https://github.com/Harbor/harb") == []
    assert "does not lead to 'harbor/harb'" in problems("https://github.com/other/harb")[0]
    side.state.name = "gone/gone"
    assert "has no repository 'harbor/harb' that the token may see" in problems()[0]
    side.token_file(BOT).chmod(0o644)
    assert "chmod 600" in problems()[0]


@pytest.mark.parametrize(
    ("rest", "graphql"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("https://git.example.com/api/v3", "https://git.example.com/api/graphql"),
    ],
)
def test_graphql_is_where_github_has_it(rest: str, graphql: str) -> None:
    assert find_graphql(GithubSettings(repository="a/b", url=rest).url) == graphql


def test_hostile_words_are_bounded_where_they_enter(side: RemoteSide) -> None:
    bad = "\x1b]0;x\x07 " + "A" * 5000
    entry = side.state.add(bad, "b" * 100, "ada")
    side.state.label(entry, [f"l{number}" * 100 for number in range(300)])
    number, _ = opened(side)
    side.open().pulls.review(
        number, ReviewState.COMMENTED, bad, [InlineComment("work.txt", 1, bad)], author="rita"
    )
    seen = side.open().observe()
    [issue] = seen.issues
    assert len(issue.title) <= 1000
    assert "\x1b" not in issue.title
    assert len(issue.labels) <= 100
    assert max(map(len, issue.labels)) <= 200


# Figures that hold


@pytest.mark.sweep
def test_twenty_minutes_of_waiting_for_ci_cost_few_points(side: RemoteSide) -> None:
    """Each of 100 sessions polling every 30 seconds would be 4,000 of the 5,000 for an hour.

    `bin/bench forge` has the whole hour.
    """
    hour.add_waiting(side, 100)
    looks = hour.look_by_clock()
    spent = hour.spend(side, looks[: len(looks) // 3])
    counted = read_book(side.folder / "quota.json").by_session()
    assert spent.points <= 100
    rules = 2 * (spent.looks // 10 - 1)  # asked for with the validators of the last answers
    assert counted["", "observe"].unchanged == spent.looks - spent.looks // 10 + rules
    assert sum(count.points for count in counted.values()) == spent.points


def test_an_hour_with_webhooks_costs_less_than_one_without(side: RemoteSide) -> None:
    """Of ten sessions, whose checks end during that hour."""
    runs = hour.add_waiting(side, 10)
    ends = [(100.0 + 300 * number, run) for number, run in enumerate(runs)]
    looks = hour.look_for_webhooks(at + 1 for at, _ in ends)
    spent = hour.spend(side, looks, ends)
    assert spent.looks <= 10 + 10 + 13
    assert spent.points <= 120


# Who has edited a text


def test_who_has_saved_title_and_text_and_set_labels_comes_in_one_query(side: RemoteSide) -> None:
    number = side.open_as("ada").issues.add("a", "old\r\n", ["backlog"], author="ada").number
    filed = side.open().issues.read_source(number)
    assert (filed.title, filed.body, filed.author) == ("a", "old\n", "ada")
    assert (filed.title_saved.by, filed.body_saved.by) == ("ada", "ada")
    assert filed.labelled["backlog"].by == "ada"
    age(side, 10)
    side.open_as("eve").issues.edit(number, body="new")
    age(side, 10)
    side.open_as("helper[bot]").issues.edit(number, title="b")
    side.open_as("eve").issues.remove_label(number, "backlog")
    side.open_as("rita").issues.add_label(number, "backlog")
    before = len(side.site.asked)
    found = side.open().issues.read_source(number)
    assert side.site.lines(before) == ["POST /graphql"]
    assert (found.title, found.body) == ("b", "new")
    assert (found.body_saved.by, found.title_saved.by) == ("eve", "helper[bot]")
    assert found.title_saved.at - found.body_saved.at == pytest.approx(10, abs=1.1)
    assert found.labelled["backlog"].by == "rita"


def test_without_graphql_nobody_is_taken_for_the_editor(side: RemoteSide) -> None:
    number = side.open_as("ada").issues.add("a", "old", author="ada").number
    github_of(side).has_graphql = False
    with pytest.raises(TemporaryError):
        side.open().issues.read_source(number)
    github_of(side).has_graphql = True
    with pytest.raises(NotFoundError, match="there is no issue 99"):
        side.open().issues.read_source(99)


def test_who_has_edited_a_comment_is_observed(side: RemoteSide) -> None:
    number = side.open_as("ada").issues.add("a", author="ada").number
    side.open().issues.comment(number, "yes", author="ada")
    side.state.entries[number].comments[0].editor = "eve"
    [issue] = side.open().observe().issues
    assert [(one.author, one.editor) for one in issue.comments] == [("ada", "eve")]
    assert side.open().issues.read_comments(number) == tuple(
        structs.replace(one, body="yes") for one in issue.comments
    )
    github_of(side).has_graphql = False
    with pytest.raises(TemporaryError):
        side.open().issues.read_comments(number)
