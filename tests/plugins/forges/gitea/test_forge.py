"""Forgejo and Gitea alone: labels by id, pages by number, no validators, their own CI."""

from __future__ import annotations

import pytest

from sm.adapters.forge.errors import AtWorkError, MergeRefusedError
from sm.adapters.forge.kinds import kind_of, open_forge
from sm.adapters.forge.model import BOT, CheckState, IssueState, PullState, ReviewState
from sm.base.errors import UsageError
from tests.forges.gitea import Gitea
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, age, asked_for, opened
from tests.forges.state import Pull, Run
from tests.helpers import git


def test_where_nothing_has_happened_it_is_one_request(side: RemoteSide) -> None:
    side.open().issues.add("a", author="ada")
    age(side)
    since = side.open().observe()
    age(side)
    seen, lines = asked_for(side, since)
    assert lines == ["GET /issues"]
    assert seen.issues == since.issues


def test_lists_are_read_to_their_end_whatever_their_links_say(side: RemoteSide) -> None:
    """A server behind a proxy may name itself by another address, and give fewer entries."""
    for number in range(75):
        side.state.add(f"t{number}", "", "ada")
    assert len(side.open().observe().issues) == 75
    assert len(side.open().issues.find()[0]) == 75
    assert [issue.number for issue in side.open().issues.find()[0]] == list(range(1, 76))


def test_labels_mean_all_of_them_and_an_unknown_one_means_none(side: RemoteSide) -> None:
    forge = side.open()
    forge.issues.add("a", labels=["x"], author="ada")
    both = forge.issues.add("b", labels=["x", "y"], author="ada").number
    assert [issue.number for issue in forge.issues.find(labels=["x", "y"])[0]] == [both]
    assert forge.issues.find(labels=["mistyped"])[0] == []


def test_a_label_is_made_if_there_is_none_of_that_name(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    assert side.open().issues.add_label(number, "new one").labels == ("new one",)
    assert side.state.labels == ["new one"]
    assert side.open().issues.remove_label(number, "new one").labels == ()


def test_the_branch_of_a_merged_pull_request_is_known_after_it_was_deleted(
    side: RemoteSide,
) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.open().pulls.merge(number, head=head, author=BOT)
    git(side.hub.repository.clone, "push", "-q", "origin", ":fix/1")
    [pull] = side.open().observe().pulls
    assert (pull.branch, pull.state) == ("fix/1", PullState.MERGED)
    found = side.open().pulls.find_newest("fix/1")
    assert found
    assert found.number == number


def test_a_draft_is_no_conflict(side: RemoteSide) -> None:
    number, _ = opened(side)
    side.state.entries[number].title = "WIP: a"
    assert not side.open().observe().pulls[0].conflicts


def test_a_pull_request_of_a_fork_is_none_of_ours(side: RemoteSide) -> None:
    head = side.push("fix/1")
    made = side.state.add("Mine", "", "mallory", Pull("fix/1", "main", head, fork="mallory"))
    assert [pull.branch for pull in side.open().observe().pulls] == ["mallory:fix/1"]
    assert side.open().pulls.find_newest("fix/1") is None
    with pytest.raises(MergeRefusedError, match="of a fork"):
        side.open().pulls.merge(made.number, author=BOT)


def test_who_may_only_read_is_no_writer(side: RemoteSide) -> None:
    side.admit("ada")
    side.open().issues.add("a", author="ada")
    side.open().issues.add("b", author="mallory")
    since = side.open().observe()
    assert since.writers == ("ada",)
    _, lines = asked_for(side, since)
    assert not [line for line in lines if "permission" in line], "it is known"


def test_a_review_counts_even_if_no_list_shows_that_it_was_given(side: RemoteSide) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    age(side)
    since = side.open().observe()
    side.open().pulls.review(number, ReviewState.APPROVED, author="rita")
    [pull] = side.open().observe(since).pulls
    assert [review.state for review in pull.reviews] == [ReviewState.APPROVED]


def test_the_log_of_a_failed_job_is_found_by_its_name(side: RemoteSide) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.FAILURE, "unit", "it broke\n")
    found = side.open().checks.read(head)
    assert (found.step, found.log) == ("unit", "it broke\n")
    assert side.open().pulls.read(number).check.log == "it broke\n"


def test_a_job_whose_name_is_a_part_of_another_ones_is_told_from_it(side: RemoteSide) -> None:
    _, head = opened(side)
    names = ("test", "test-integration", "slow / test", "test (3.11)")
    side.state.runs = [
        Run(number, head, f"CI / {name} (push)", "failure", log=f"log of {name}\n", job=name)
        for number, name in enumerate(names, 1)
    ]
    log = side.open().checks.read(head).log.splitlines()
    told = dict(zip(log[::3], log[1::3], strict=False))
    assert told == {f"== CI / {name} (push)": f"log of {name}" for name in sorted(names)[:3]}


def test_without_logs_the_status_says_what_it_knows(side: RemoteSide) -> None:
    _, head = opened(side)
    side.finish(head, CheckState.FAILURE, "unit", "it broke\n")
    side.state.runs[-1].text = "Failing after 3s"
    side.site.faults = [Fault(part="/actions/runs", reply=Reply(404), times=9)]
    log = side.open().checks.read(head).log
    assert log.startswith("Failing after 3s\ncannot read the log: GET")


def test_ci_is_run_again_where_the_server_offers_it(side: RemoteSide) -> None:
    _, head = opened(side)
    assert isinstance(side.dialect, Gitea)
    with pytest.raises(AtWorkError):
        side.open().checks.rerun(head)
    side.finish(head, CheckState.FAILURE)
    side.open().checks.rerun(head)
    assert side.state.reruns == ["rerun-failed-jobs" if side.kind == "gitea" else "rerun"]
    side.dialect.is_old = True
    side.finish(head, CheckState.FAILURE)
    with pytest.raises(UsageError, match="cannot be run again"):
        side.open().checks.rerun(head)


def test_a_merge_whose_answer_is_lost_is_a_merge(side: RemoteSide) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    side.site.faults = [Fault(part="/merge", drop=True, after=True)]
    assert side.open().pulls.merge(number, head=head, author=BOT).state is PullState.MERGED


def test_a_closed_issue_that_others_depend_on_is_known(side: RemoteSide) -> None:
    first = side.open().issues.add("a", author="ada").number
    side.open().issues.close(first)
    side.state.entries[first].updated -= 90 * 86400
    side.open().issues.add("b", f"Depends on #{first}", ["backlog"], author="ada")
    found = {issue.number: issue.state for issue in side.open().observe().issues}
    assert found[first] is IssueState.CLOSED


def test_what_is_wrong_is_told(side: RemoteSide) -> None:
    project = side.project
    url = "ssh://git@code.example.com/harbor/harb.git"
    assert "has no label" in next(iter(kind_of(project.forge).find_problems(project, url)))
    side.state.labels = ["backlog", "in-progress", "blocked"]
    assert list(kind_of(project.forge).find_problems(project, url)) == []


def test_another_repository_of_the_old_name_is_not_taken_for_it(side: RemoteSide) -> None:
    configured = side.project
    open_forge(configured, None, side.folder).observe()
    side.state.name = "harbour/new"
    seen = open_forge(configured, None, side.folder).observe()
    assert any("is called 'harbour/new' now" in problem for problem in seen.problems)
