"""Contract of forges: a test inherits `ForgeContract`, and writes the pytest fixture `side`."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from sm.adapters.forge.errors import (
    HeadMovedError,
    NotFoundError,
    NothingToMergeError,
    PullClosedError,
)
from sm.adapters.forge.model import (
    BOT,
    Batch,
    CheckState,
    InlineComment,
    IssueState,
    PullState,
    ReviewState,
)
from sm.adapters.forge.protocol import Forge
from sm.base.clock import wait_until
from sm.base.decoder import decode
from sm.base.errors import SmError, UsageError

LOG = "step: build\nit broke\n"
PUSHER = "Ada Tester <ada@example.com> 1767323045 +0000"
SEEN_S = 240.0
"""Seconds within which a server finds something out by itself; machines are slow."""


@contextlib.contextmanager
def refusing(kind: type[SmError]) -> Iterator[None]:
    """Expect that error, as `pytest.raises` does."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"there was no {kind.__name__}")


def push(bare: Path, branch: str, name: str = "work.txt", content: str = "work\n") -> str:
    """Commit a change on `branch` of a bare repository, made from `main` if it is new; the commit.

    It stands for a push: a clone would cost a dozen processes.
    """
    ref, words = f"refs/heads/{branch}", f"work on {branch}"
    start = ref if (bare / ref).exists() else "refs/heads/main"
    order = (
        f"commit {ref}\nmark :1\ncommitter {PUSHER}\ndata {len(words)}\n{words}\n"
        f"from {start}^0\n"
        f"M 100644 inline {name}\ndata {len(content.encode())}\n{content}\n"
        "get-mark :1\n"
    )
    line = ["git", "-C", str(bare), "fast-import", "--quiet"]
    done = subprocess.run(line, input=order.encode(), capture_output=True, check=True)
    return done.stdout.decode().strip()


class ForgeSide(Protocol):
    """A forge and the world around it: what others do there. Its repository has a branch `main`."""

    def open(self) -> Forge:
        """The forge, as a process of its own would open it."""
        ...

    def admit(self, *authors: str) -> None:
        """Let these people push to the repository."""
        ...

    def push(self, branch: str, name: str = "work.txt", content: str = "work\n") -> str:
        """Commit on `branch` and push; the commit. CI is at work on it until `finish`."""
        ...

    def finish(self, head: str, state: CheckState, step: str = "", log: str = "") -> None:
        """CI has come to this result."""
        ...


class ForgeContract:
    """Observed, written once, refused; no review is required before a merge."""

    # Observing

    def test_what_is_filed_is_observed(self, side: ForgeSide) -> None:
        side.admit("ada")
        forge = side.open()
        filed = forge.issues.add("Mend it", "It is broken.", ["backlog"], author="ada")
        [seen] = forge.observe().issues
        assert (seen.number, seen.title, seen.state) == (filed.number, "Mend it", IssueState.OPEN)
        assert (seen.author, seen.labels) == ("ada", ("backlog",))
        assert abs(seen.at - time.time()) < 60
        assert forge.issues.read(filed.number).body == "It is broken."

    def test_an_observation_goes_on_from_the_last_one(self, side: ForgeSide) -> None:
        forge = side.open()
        first, second = (forge.issues.add(title, author="ada").number for title in ("a", "b"))
        since = forge.observe()
        forge.issues.add_label(second, "blocked")
        third = forge.issues.add("c", author="ada").number
        seen = side.open().observe(since)
        assert [issue.number for issue in seen.issues] == [first, second, third]
        assert {issue.number: issue.labels for issue in seen.issues}[second] == ("blocked",)

    def test_an_observation_that_was_lost_is_made_again(self, side: ForgeSide) -> None:
        """A forge remembers no observation: its caller may not have been able to keep it."""
        forge = side.open()
        number = forge.issues.add("a", author="ada").number
        since = forge.observe()
        forge.issues.close(number)
        lost, again = forge.observe(since), forge.observe(since)
        assert lost.issues == again.issues
        assert again.issues[0].state is IssueState.CLOSED

    def test_nothing_changes_where_nothing_has(self, side: ForgeSide) -> None:
        forge = side.open()
        side.push("fix/1")
        forge.issues.add("a", author="ada")
        forge.pulls.open("fix/1", "main", "a", author=BOT)
        since = forge.observe()
        seen = forge.observe(since)
        assert (seen.issues, seen.pulls, seen.writers) == (since.issues, since.pulls, since.writers)
        assert not forge.is_stale(seen)

    def test_validators_come_back_as_they_were_kept(self, side: ForgeSide) -> None:
        """Validators are kept in a file, between processes."""
        forge = side.open()
        forge.issues.add("a", author="ada")
        kept = msgspec.json.encode(forge.observe())
        assert side.open().observe(decode(kept, Batch)).issues

    def test_checks_come_with_their_heads_and_without_a_log(self, side: ForgeSide) -> None:
        forge = side.open()
        head = side.push("fix/1")
        forge.pulls.open("fix/1", "main", "a", author=BOT)
        since = forge.observe()
        assert since.pulls[0].check.state is CheckState.PENDING
        side.finish(head, CheckState.FAILURE, "build", LOG)
        [pull] = forge.observe(since).pulls
        assert (pull.head, pull.check.head) == (head, head)
        assert (pull.check.state, pull.check.step) == (CheckState.FAILURE, "build")
        assert pull.check.log == ""
        assert forge.checks.read(head).log.rstrip() == LOG.rstrip()

    def test_a_push_moves_the_head_and_its_check(self, side: ForgeSide) -> None:
        forge = side.open()
        side.finish(side.push("fix/1"), CheckState.SUCCESS)
        forge.pulls.open("fix/1", "main", "a", author=BOT)
        since = forge.observe()
        assert since.pulls[0].check.state is CheckState.SUCCESS
        new = side.push("fix/1", content="more\n")
        [pull] = forge.observe(since).pulls
        assert (pull.head, pull.check.state) == (new, CheckState.PENDING)

    def test_a_conflict_is_observed(self, side: ForgeSide) -> None:
        forge = side.open()
        side.push("fix/1", content="one\n")
        side.push("fix/2", content="other\n")
        first = forge.pulls.open("fix/1", "main", "a", author=BOT)
        forge.pulls.open("fix/2", "main", "b", author=BOT)
        side.finish(first.head, CheckState.SUCCESS)
        since = forge.observe()
        assert not any(pull.conflicts for pull in since.pulls)
        forge.pulls.merge(first.number, author=BOT)

        def is_seen() -> bool:  # a server takes a moment to find out
            seen = {pull.branch: pull for pull in forge.observe(since).pulls}
            return seen["fix/1"].state is PullState.MERGED and seen["fix/2"].conflicts

        assert wait_until(is_seen, SEEN_S, 0.05), "the conflict is not seen"

    def test_those_who_may_push_are_observed_as_writers(self, side: ForgeSide) -> None:
        side.admit("ada", "rita")
        forge = side.open()
        number = forge.issues.add("a", author="ada").number
        since = forge.observe()
        assert since.writers == ("ada",)
        forge.issues.comment(number, "Yes.", author="rita")
        assert forge.observe(since).writers == ("ada", "rita")
        assert forge.find_writers(["rita"]) == {"rita"}

    # Writing twice

    def test_a_comment_with_a_marker_stands_there_once(self, side: ForgeSide) -> None:
        forge = side.open()
        number = forge.issues.add("a", author="ada").number
        assert forge.issues.comment(number, "Hello.", author=BOT, marker="m1")
        assert not side.open().issues.comment(number, "Hello.", author=BOT, marker="m1")
        [comment] = forge.issues.read(number).comments
        assert (comment.author, comment.body, comment.marker) == (BOT, "Hello.", "m1")

    def test_a_pull_request_has_comments_too(self, side: ForgeSide) -> None:
        forge = side.open()
        side.push("fix/1")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        assert forge.pulls.comment(number, "Hello.", author=BOT, marker="m1")
        assert not forge.pulls.comment(number, "Hello.", author=BOT, marker="m1")
        assert [comment.body for comment in forge.pulls.read(number).comments] == ["Hello."]

    def test_a_branch_is_offered_once(self, side: ForgeSide) -> None:
        forge = side.open()
        head = side.push("fix/1")
        first = forge.pulls.open("fix/1", "main", "a", "Closes #1", author=BOT)
        again = side.open().pulls.open("fix/1", "main", "a", "Closes #1", author=BOT)
        assert (first.number, first.head) == (again.number, head)
        found = forge.pulls.find_newest("fix/1")
        assert found
        assert found.number == first.number
        assert forge.pulls.find_newest("fix/2") is None

    def test_labels_and_states_may_be_set_twice(self, side: ForgeSide) -> None:
        side.admit("ada")
        forge = side.open()
        number = forge.issues.add("a", labels=["backlog"], author="ada").number
        for _ in range(2):
            forge.issues.add_label(number, "blocked")
            forge.issues.remove_label(number, "backlog")
        assert forge.issues.read(number).labels == ("blocked",)
        assert "blocked" in forge.issues.list_labels()  # a forge may know labels that no issue has
        for _ in range(2):
            assert forge.issues.close(number).state is IssueState.CLOSED
        assert forge.issues.find(IssueState.OPEN)[0] == []
        for _ in range(2):
            assert forge.issues.reopen(number).state is IssueState.OPEN
        assert [issue.number for issue in forge.issues.find(labels=["blocked"])[0]] == [number]

    def test_a_merge_is_done_once(self, side: ForgeSide) -> None:
        forge = side.open()
        head = side.push("fix/1")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        side.finish(head, CheckState.SUCCESS)
        merged = forge.pulls.merge(number, head=head, author=BOT)
        assert (merged.state, merged.head) == (PullState.MERGED, head)
        assert merged.closed_at
        assert side.open().pulls.merge(number, head=head, author=BOT).merged_as == merged.merged_as
        assert forge.branch_head("main") == merged.merged_as
        with refusing(PullClosedError):
            forge.pulls.close(number)

    def test_a_closed_pull_request_stays_closed(self, side: ForgeSide) -> None:
        forge = side.open()
        side.push("fix/1")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        for _ in range(2):
            assert forge.pulls.close(number).state is PullState.CLOSED
        with refusing(PullClosedError):
            forge.pulls.merge(number, author=BOT)

    # Refusals

    def test_another_head_than_the_reviewed_one_is_not_merged(self, side: ForgeSide) -> None:
        forge = side.open()
        old = side.push("fix/1")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        side.finish(side.push("fix/1", content="more\n"), CheckState.SUCCESS)
        with refusing(HeadMovedError):
            forge.pulls.merge(number, head=old, author=BOT)

    def test_what_is_not_there_is_not_found(self, side: ForgeSide) -> None:
        forge = side.open()
        for ask in (forge.issues.read, forge.pulls.read, forge.is_pull, forge.issues.close):
            with refusing(NotFoundError):
                ask(7)
        with refusing(NotFoundError):
            forge.issues.comment(7, "Hello.", author=BOT)
        with refusing(NotFoundError):
            forge.pulls.open("fix/7", "main", "a", author=BOT)
        assert forge.branch_head("fix/7") == ""

    def test_issues_and_pull_requests_are_told_apart(self, side: ForgeSide) -> None:
        """Where they are numbered apart, the second pull request has not the issue's number."""
        forge = side.open()
        issue = forge.issues.add("a", author="ada").number
        pulls = []
        for branch in ("fix/1", "fix/2"):
            side.push(branch, f"{branch[-1]}.txt")
            pulls.append(forge.pulls.open(branch, "main", branch, author=BOT).number)
        assert (forge.is_pull(issue), forge.is_pull(pulls[1])) == (False, True)
        assert forge.pulls.read(pulls[1]).branch == "fix/2"
        with refusing(NotFoundError):
            forge.issues.read(pulls[1])

    def test_a_branch_without_work_is_not_offered(self, side: ForgeSide) -> None:
        forge = side.open()
        head = side.push("fix/1")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        side.finish(head, CheckState.SUCCESS)
        forge.pulls.merge(number, author=BOT)
        with refusing(NothingToMergeError):
            forge.pulls.open("fix/1", "main", "a", author=BOT)

    def test_a_text_that_others_have_changed_is_not_replaced(self, side: ForgeSide) -> None:
        forge = side.open()
        number = forge.issues.add("a", "old", author="ada").number
        forge.issues.edit(number, title="b", body="new", instead_of="old")
        with refusing(UsageError):
            forge.issues.edit(number, body="newer", instead_of="old")
        found = forge.issues.read(number)
        assert (found.title, found.body) == ("b", "new")

    # Reviews

    def test_a_review_is_of_the_commit_and_keeps_its_remarks(self, side: ForgeSide) -> None:
        forge = side.open()
        head = side.push("fix/1")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        since = forge.observe()
        remark = InlineComment("work.txt", 1, "Why?")
        wish = ReviewState.CHANGES_REQUESTED
        made = forge.pulls.review(number, wish, "No.", [remark], author="rita")
        [seen] = forge.observe(since).pulls[0].reviews
        assert (seen.id, seen.author, seen.state, seen.head) == (made.id, "rita", wish, head)
        [whole] = forge.pulls.read(number).reviews
        [kept] = whole.comments
        assert (whole.body, kept.path, kept.line, kept.body) == ("No.", "work.txt", 1, "Why?")

    def test_what_came_behind_a_commit_is_counted(self, side: ForgeSide) -> None:
        forge = side.open()
        first = side.push("fix/1")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        assert (forge.pulls.read_head(number), forge.pulls.count_commits(number, first)) == (
            first,
            0,
        )
        side.push("fix/1", content="more\n")
        last = side.push("fix/1", content="still more\n")
        assert forge.pulls.read_head(number) == last
        assert forge.pulls.count_commits(number, first) == 2
        with refusing(NotFoundError):
            forge.pulls.count_commits(number, "f" * 40)

    def test_the_changes_of_a_pull_request_are_shown(self, side: ForgeSide) -> None:
        forge = side.open()
        side.push("fix/1", "new.txt", "hello\n")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        assert b"+hello" in forge.pulls.diff(number)
        assert forge.pulls.list_files(number) == ["new.txt"]
