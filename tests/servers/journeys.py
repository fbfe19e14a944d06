"""What is walked on Gitea and Forgejo beyond the contract of all forges: tests to be inherited."""

from __future__ import annotations

import pytest

from sm.adapters.forge.errors import (
    BaseMovedError,
    BehindError,
    ConflictError,
    MergeRefusedError,
    NotApprovedError,
    NotFoundError,
    PullClosedError,
    RefusedError,
)
from sm.adapters.forge.model import (
    BOT,
    CheckState,
    Hold,
    InlineComment,
    IssueState,
    PullRequest,
    PullState,
    ReviewState,
)
from sm.adapters.forge.protocol import Forge
from sm.base.errors import UsageError
from sm.plugins.forges.rest.shapes import FAST_FORWARD, METHODS, REBASE, REBASE_MERGE
from sm.plugins.forges.web.errors import TokenRefusedError
from tests.helpers import wait_for
from tests.servers.sides import SAID, World, reopen

CHANGES, APPROVED = ReviewState.CHANGES_REQUESTED, ReviewState.APPROVED


def offer(side: World, branch: str) -> tuple[int, str]:
    """A pull request that has passed CI, of a branch with a file of its own; and its commit."""
    head = side.push(branch, f"{branch.replace('/', '-')}.txt")
    number = side.open().pulls.open(branch, "main", "a", author=BOT).number
    side.finish(head, CheckState.SUCCESS)
    return number, head


def merge(
    forge: Forge, number: int, head: str = "", timeout_s: float = 60.0, **more: str
) -> PullRequest:
    """Merge as a tick of `sm` does: later, while the server is still finding out whether it can."""

    def try_it() -> PullRequest | None:
        try:
            return forge.pulls.merge(number, head=head, author=BOT, **more)
        except BaseMovedError:
            return None

    merged = wait_for(try_it, f"the merge of {number}", timeout_s, every_s=0.2)
    assert merged
    return merged


class Journeys:
    """The tests. A subclass has the fixture `side`; no review is required by the project."""

    # Issues

    def test_an_issue_goes_through_its_labels(self, side: World) -> None:
        side.add_organisation_label("of all")
        forge = side.open()
        number = forge.issues.add("Mend it", "Soon.", ["backlog", "of all"], author=BOT).number
        assert {"backlog", "of all"} <= forge.issues.list_labels()
        forge.issues.add_label(number, "in-progress")
        forge.issues.remove_label(number, "backlog")
        forge.issues.remove_label(number, "of all")
        assert forge.issues.read(number).labels == ("in-progress",)
        assert forge.issues.comment(number, "Begun.", author=BOT, marker="m")

    def test_a_pull_request_waits_for_an_issue_that_it_depends_on(self, side: World) -> None:
        forge = side.open()
        issue = forge.issues.add("First", author=BOT).number
        number, head = offer(side, "fix/1")
        side.depend(number, issue)
        with pytest.raises(MergeRefusedError, match=f"depends on #{issue}"):
            merge(forge, number, head)
        forge.issues.close(issue)
        assert merge(forge, number, head).state is PullState.MERGED

    def test_a_comment_with_a_mark_on_what_is_not_there_is_refused(self, side: World) -> None:
        with pytest.raises(NotFoundError):
            side.open().issues.comment(7, "Begun.", author=BOT, marker="m")

    def test_an_issue_waits_for_another_that_it_depends_on(self, side: World) -> None:
        forge = side.open()
        first, second = (forge.issues.add(one, author=BOT).number for one in ("one", "two"))
        side.depend(second, first)
        with pytest.raises(RefusedError, match="open dependencies"):
            forge.issues.close(second)
        forge.issues.add_label(second, "backlog")
        [seen] = [one for one in forge.observe().issues if one.number == second]
        assert f"#{first}" in seen.waits
        forge.issues.close(first)
        assert forge.issues.close(second).state is IssueState.CLOSED

    # Merges

    @pytest.mark.parametrize("method", METHODS)
    def test_each_way_to_merge_is_a_merge(self, side: World, method: str) -> None:
        number, head = offer(side, "fix/1")
        forge = reopen(side, merge_method=method)
        merged = merge(forge, number, head, message="It works\n\nAt last.")
        assert (merged.state, merged.head) == (PullState.MERGED, head)
        assert forge.branch_head("main") == merged.merged_as
        assert (merged.merged_as == head) == (method in ("rebase", FAST_FORWARD))

    def test_a_fast_forward_that_is_not_possible_says_what_to_do(self, side: World) -> None:
        (first, _), (second, head) = offer(side, "fix/1"), offer(side, "fix/2")
        forge = reopen(side, merge_method=FAST_FORWARD)
        since = forge.observe()
        assert [one.hold for one in since.pulls] == [Hold.NONE, Hold.NONE]
        merge(forge, first)
        with pytest.raises(BehindError, match="rebase it and push"):
            merge(forge, second, head)
        held = {one.number: one.hold for one in forge.observe(since).pulls}
        assert held[second] is Hold.BEHIND
        assert merge(side.open(), second, head).state is PullState.MERGED, "by another method"

    def test_commits_that_cannot_be_rebased_one_by_one_are_a_conflict(self, side: World) -> None:
        """What they come to merges without one."""
        forge = side.open()
        side.push("fix/1", content="first\n")
        head = side.push("fix/1", content="same\n")
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        other = side.push("fix/2", content="same\n")
        before = forge.pulls.open("fix/2", "main", "a", author=BOT).number
        for one in (head, other):
            side.finish(one, CheckState.SUCCESS)
        merge(forge, before, other)
        for method in (REBASE, REBASE_MERGE):
            with pytest.raises(ConflictError, match="rebase it and push"):
                merge(reopen(side, merge_method=method), number, head)
        assert merge(forge, number, head).state is PullState.MERGED, "by a merge commit"

    def test_a_way_to_merge_that_is_not_allowed_is_refused(self, side: World) -> None:
        number, head = offer(side, "fix/1")
        side.allow("merge")
        for method in METHODS[1:]:
            with pytest.raises(MergeRefusedError, match="not allowed"):
                merge(reopen(side, merge_method=method), number, head)
        assert merge(side.open(), number, head).state is PullState.MERGED

    def test_a_conflict_is_told_at_the_merge(self, side: World) -> None:
        forge = side.open()
        for branch in ("fix/1", "fix/2"):
            head = side.push(branch, content=f"{branch}\n")
            forge.pulls.open(branch, "main", "a", author=BOT)
            side.finish(head, CheckState.SUCCESS)
        first, second = (forge.pulls.find_newest(one) for one in ("fix/1", "fix/2"))
        assert first
        assert second
        merge(forge, first.number)
        with pytest.raises(ConflictError):
            merge(forge, second.number)
        assert forge.pulls.close(second.number).state is PullState.CLOSED
        with pytest.raises(PullClosedError):
            merge(forge, second.number)

    def test_a_protected_branch_waits_for_checks_and_approvals(self, side: World) -> None:
        side.admit("rita")
        side.protect(["build", "lint"], 1)
        forge = side.open()
        number, head = offer(side, "fix/1")
        since = forge.observe()
        assert since.pulls[0].check.state is CheckState.PENDING, "lint has not begun"
        side.finish(head, CheckState.SUCCESS, "lint")
        assert forge.observe(since).pulls[0].held
        with pytest.raises(MergeRefusedError):
            merge(forge, number, head)
        forge.pulls.review(number, APPROVED, "Good.", author="rita")
        side.ask_review(number, "rita")
        assert forge.observe(since).pulls[0].held, "another review is asked for"
        forge.pulls.review(number, APPROVED, "Still good.", author="rita")
        assert not forge.observe(since).pulls[0].held
        assert merge(forge, number, head).state is PullState.MERGED

    def test_a_branch_that_is_behind_is_told(self, side: World) -> None:
        side.protect(behind=True)
        forge = side.open()
        (first, _), (second, head) = offer(side, "fix/1"), offer(side, "fix/2")
        merge(forge, first)
        with pytest.raises(MergeRefusedError, match="rebase it"):
            merge(forge, second, head)

    def test_a_draft_is_not_merged(self, side: World) -> None:
        number, head = offer(side, "fix/1")
        side.make_draft(number)
        forge = side.open()
        assert not forge.observe().pulls[0].conflicts
        with pytest.raises(MergeRefusedError):
            merge(forge, number, head)

    def test_a_forks_pull_request_with_our_commit_is_none_of_ours(self, side: World) -> None:
        number, head = offer(side, "fix/1")
        forge = side.open()
        forked = side.offer_from_fork("mallory", "fix/1")
        seen = {one.number: one for one in forge.observe().pulls}
        assert (seen[number].branch, seen[forked].branch) == ("fix/1", "mallory:fix/1")
        assert forge.pulls.open("fix/1", "main", "a", author=BOT).number == number
        with pytest.raises(MergeRefusedError, match="fork"):
            merge(forge, forked)
        merge(forge, number, head)

    # Reviews

    def test_a_request_for_changes_ends_with_the_next_verdict(self, side: World) -> None:
        side.admit("rita")
        forge = side.open()
        number, head = offer(side, "fix/1")
        remark = InlineComment("fix-1.txt", 1, "Why?")
        forge.pulls.review(number, CHANGES, "No.", [remark], author="rita")
        with pytest.raises(NotApprovedError):
            merge(forge, number, head)
        head = side.push("fix/1", "fix-1.txt", "better\n")
        side.finish(head, CheckState.SUCCESS)
        forge.pulls.review(number, APPROVED, "Yes.", author="rita")
        first, second = forge.pulls.read(number).reviews
        assert (first.state, second.state) == (ReviewState.COMMENTED, APPROVED)
        assert [(one.path, one.line) for one in first.comments] == [("fix-1.txt", 1)]
        assert merge(forge, number, head).state is PullState.MERGED

    def test_no_verdict_on_ones_own_pull_request_is_taken(self, side: World) -> None:
        number, _ = offer(side, "fix/1")
        forge = side.open_as(BOT)
        with pytest.raises(Exception, match="own pull"):
            forge.pulls.review(number, APPROVED, "Mine.", author=BOT)
        assert forge.pulls.review(number, ReviewState.COMMENTED, "Hm.", author=BOT).body == "Hm."

    # The server's own CI

    def test_ci_fails_with_its_log_and_then_passes(self, side: World) -> None:
        forge = side.open()
        head = side.run_ci("fix/1", passes=False)
        number = forge.pulls.open("fix/1", "main", "a", author=BOT).number
        found = forge.observe().pulls[0].check
        assert (found.state, found.head) == (CheckState.FAILURE, head)
        assert SAID.format("broken") in forge.checks.read(head).log
        with pytest.raises(UsageError, match="cannot be run again"):
            forge.checks.rerun(head)
        head = side.run_ci("fix/1", passes=True)
        assert merge(forge, number, head).state is PullState.MERGED

    # The server

    def test_a_repository_that_was_renamed_is_followed(self, side: World) -> None:
        forge = side.open()
        first = forge.issues.add("Before", author=BOT).number
        since = forge.observe()
        side.rename("new")
        assert side.open().issues.read(first).title == "Before", "by the old name"
        since = side.open().observe(since)
        found = side.open().observe()
        assert any("is called" in one for one in found.problems)
        second = side.open().issues.add("After", author=BOT).number
        assert {one.number for one in side.open().observe(since).issues} == {first, second}

    def test_a_token_that_was_deleted_is_told_and_another_one_taken(self, side: World) -> None:
        forge = side.open_as("rita")
        forge.observe()
        side.revoke("rita")
        with pytest.raises(TokenRefusedError):
            forge.observe()
        side.token_file("rita").unlink()
        renewed = side.token_file("rita")
        assert renewed.exists()
        assert forge.observe().problems == ()
