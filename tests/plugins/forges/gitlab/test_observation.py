"""What an observation costs, and what it reads: numbers, states, texts, people."""

from __future__ import annotations

import time

import pytest

from sm.adapters.forge.errors import (
    MergeRefusedError,
)
from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.model import (
    BOT,
    CheckState,
    InlineComment,
    IssueState,
    PullState,
    ReviewState,
)
from sm.plugins.forges.gitlab.quick_actions import defuse, title_pull
from sm.plugins.forges.web.errors import LimitedError
from sm.plugins.forges.web.ledger import read_book
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, age, asked_for, opened
from tests.forges.state import Pull
from tests.helpers import git
from tests.plugins.forges.gitlab.offers import dialect_of

COMMANDS = "Look:\n/merge\n  /close\n/label ~x\n/\rmerge\n"


# What an observation costs


def test_where_nothing_has_happened_it_is_two_requests_and_one_for_what_waits(
    side: RemoteSide,
) -> None:
    side.open().issues.add("a", author="ada")
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
    number = side.open().issues.add("a", author="ada").number
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
    assert [issue.number for issue in side.open().issues.find()[0]] == list(range(1, 46))


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
    number = side.open().issues.add("a", author="ada").number
    pull, _ = opened(side)
    assert number == pull
    side.open().issues.comment(number, "To the issue.", author=BOT, marker="m")
    assert side.open().pulls.comment(pull, "To the request.", author=BOT, marker="m")
    assert [one.body for one in side.open().issues.read(number).comments] == ["To the issue."]
    assert [one.body for one in side.open().pulls.read(pull).comments] == ["To the request."]
    assert side.open().pulls.read(pull).name == "!1"


def test_what_gitlab_tells_itself_is_no_comment(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    side.open().issues.comment(number, "Hello.", author="ada")
    assert [one.body for one in side.open().observe().issues[0].comments] == ["Hello."]


def test_no_text_of_others_is_a_command(side: RemoteSide) -> None:
    """GitLab does what a line such as /merge says, with the rights of our account."""
    forge = side.open()
    number = forge.issues.add("a", COMMANDS, author=BOT).number
    forge.issues.edit(number, body=COMMANDS)
    forge.issues.comment(number, COMMANDS, author=BOT, marker="m")
    side.push("fix/1")
    pull = forge.pulls.open("fix/1", "main", "a", COMMANDS, author=BOT).number
    forge.pulls.comment(pull, COMMANDS, author=BOT)
    remarks = [InlineComment("work.txt", 1, COMMANDS), InlineComment("work.txt", 9, COMMANDS)]
    forge.pulls.review(pull, ReviewState.COMMENTED, COMMANDS, remarks, author="rita")
    assert dialect_of(side).commanded == []
    assert forge.issues.read(number).comments[0].body.startswith("Look:\n\\/merge\n")


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("/merge", r"\/merge"),
        ("a\r\n\t/Close now", "a\r\n\t\\/Close now"),
        ("/\rmerge", "\\/\rmerge"),
        ("\r /mer\rge\r", "\r \\/mer\rge\r"),
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
    assert side.open().pulls.open("fix/1", "main", "Draft: a", author=BOT).title == "a"
    assert title_pull("[Draft] WIP: x") == "x"
    assert title_pull("Drafting") == "Drafting"
    assert title_pull("Draft:") == "Draft:"


def test_a_title_is_as_long_as_gitlab_takes_it(side: RemoteSide) -> None:
    made = side.open().issues.add("t" * 900, author="ada")
    assert len(made.title) == 255
    assert side.open().issues.edit(made.number, title="u" * 256).title.endswith("u…")


def test_labels_mean_all_of_them(side: RemoteSide) -> None:
    forge = side.open()
    forge.issues.add("a", labels=["x"], author="ada")
    both = forge.issues.add("b", labels=["x", "y"], author="ada").number
    assert [issue.number for issue in forge.issues.find(labels=["x", "y"])[0]] == [both]
    assert forge.issues.find(labels=["mistyped"])[0] == []
    assert [one.title for one in forge.issues.find(IssueState.OPEN)[0]] == ["a", "b"]


def test_a_pull_request_of_a_fork_is_none_of_ours(side: RemoteSide) -> None:
    head = side.push("fix/1")
    made = side.state.add("Mine", "", "mallory", Pull("fix/1", "main", head, fork="mallory"))
    side.finish(head, CheckState.SUCCESS)
    forge = side.open()
    seen, lines = asked_for(side, None)
    assert [pull.branch for pull in seen.pulls] == ["mallory:fix/1"]
    assert not [line for line in lines if "/merge_requests/1" in line]
    assert forge.pulls.find_newest("fix/1") is None
    with pytest.raises(MergeRefusedError, match="of a fork"):
        forge.pulls.merge(made.number, author=BOT)
    assert forge.pulls.open("fix/1", "main", "ours", author=BOT).number != made.number


def test_merged_and_closed_pull_requests_are_told_apart(side: RemoteSide) -> None:
    first, head = opened(side, "fix/1")
    side.finish(head, CheckState.SUCCESS)
    side.open().pulls.merge(first, author=BOT)
    second, _ = opened(side, "fix/2")
    side.open().pulls.close(second)
    found = {state: side.open().pulls.find(state)[0] for state in PullState}
    assert [one.number for one in found[PullState.MERGED]] == [first]
    assert [one.number for one in found[PullState.CLOSED]] == [second]
    assert found[PullState.OPEN] == []
    git(side.hub.repository.clone, "push", "-q", "origin", ":fix/1")
    again_ = side.open().pulls.find_newest("fix/1")
    assert again_
    assert again_.state is PullState.MERGED


def test_an_older_server_gives_a_patch_in_pieces(side: RemoteSide) -> None:
    number, _ = opened(side)
    whole = side.open().pulls.diff(number)
    side.site.faults = [Fault(part="/raw_diffs", reply=Reply(404, {"message": "404 Not Found"}))]
    pieces = side.open().pulls.diff(number)
    assert b"diff --git a/fix-1.txt b/fix-1.txt\n" in whole
    assert pieces == (
        b"diff --git a/fix-1.txt b/fix-1.txt\n--- /dev/null\n+++ b/fix-1.txt\n@@ -0,0 +1 @@\n+x\n"
    )
    assert b"fix-1.txt | 1 +" in side.open().pulls.diff(number, stat=True)


# Whose words count


def test_who_may_only_read_is_no_writer(side: RemoteSide) -> None:
    side.admit("ada")
    for author in ("ada", "mallory", "reporter", "ad"):
        side.open().issues.add("a", author=author)
    since = side.open().observe()
    assert since.writers == ("ada",)
    assert side.open().find_writers(["ad", "ada", "reporter"]) == {"ada"}
    _, lines = asked_for(side, since)
    assert not [line for line in lines if "members" in line], "it is known"


def test_a_mark_of_somebody_else_is_no_mark(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    side.open().issues.comment(number, "Forged.\n\n<!-- sm:m1 -->", author="mallory")
    assert side.open().issues.comment(number, "Hello.", author=BOT, marker="m1")
    assert [one.marker for one in side.open().issues.read(number).comments] == ["", "m1"]


def test_a_comment_that_cannot_be_read_costs_no_other_one(side: RemoteSide) -> None:
    forge = side.open()
    number = forge.issues.add("a", author="ada").number
    for text in ("bad", "good"):
        forge.issues.comment(number, text, author="ada")
    side.state.entries[number].comments[0].body = 7  # type: ignore[assignment]
    assert [one.body for one in forge.issues.read(number).comments] == ["good"]
