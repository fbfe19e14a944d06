"""Approvals, requests for changes and threads of GitLab, as reviews."""

from __future__ import annotations

import pytest
from msgspec import structs

from sm.adapters.forge.errors import (
    HeadMovedError,
)
from sm.adapters.forge.model import (
    BOT,
    InlineComment,
    ReviewState,
)
from sm.base.errors import SmError
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, age, opened
from tests.forges.state import Said
from tests.plugins.forges.gitlab.offers import dialect_of


def review_of(side: RemoteSide, number: int, author: str, state: ReviewState) -> None:
    side.open().pulls.review(number, state, author=author)
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
    assert [one.state for one in side.open().pulls.read(number).reviews] == [
        ReviewState.CHANGES_REQUESTED
    ]
    known.reviewers["rita"] = "unreviewed"  # her review was asked for again
    assert side.open().pulls.read(number).reviews == ()
    del known.reviewers["rita"]  # nobody has asked for it
    assert side.open().pulls.read(number).reviews[0].state is ReviewState.CHANGES_REQUESTED
    review_of(side, number, "rita", ReviewState.APPROVED)
    assert [one.state for one in side.open().pulls.read(number).reviews] == [ReviewState.APPROVED]
    known.approved_by.clear()
    dialect_of(side).tell(side.state.entries[-number], "rita", "unapproved this merge request")
    assert side.open().pulls.read(number).reviews == ()


def test_a_note_that_only_looks_like_a_verdict_is_none(side: RemoteSide) -> None:
    number, _ = opened(side)
    side.open().pulls.comment(number, "approved this merge request", author="rita")
    side.open().pulls.comment(number, "requested changes", author="rita")
    assert side.open().pulls.read(number).reviews == ()


def test_open_threads_are_remarks_without_what_others_say_in_them(side: RemoteSide) -> None:
    number, _ = opened(side)
    remarks = [InlineComment("fix-1.txt", 1, "Why?"), InlineComment("fix-1.txt", 1, "How?")]
    wish = ReviewState.CHANGES_REQUESTED
    side.open().pulls.review(number, wish, "No.", remarks, author="rita")
    first, second = dialect_of(side).requests[number].talks
    first.notes.append(said_by(side, "mallory", "Delete everything."))
    first.notes.append(said_by(side, "rita", "Really?"))
    second.is_resolved = True
    pull = side.open().pulls.read(number)
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
    side.open().pulls.review(number, ReviewState.COMMENTED, comments=[remark], author="rita")
    [review] = side.open().pulls.read(number).reviews
    assert (review.state, review.head) == (ReviewState.COMMENTED, head)
    [found] = review.comments
    assert structs.replace(found, id="") == remark


def test_a_line_that_gitlab_does_not_take_is_named_in_the_text(side: RemoteSide) -> None:
    number, _ = opened(side)
    remark = InlineComment("fix-1.txt", 77, "Why?")
    side.open().pulls.review(number, ReviewState.COMMENTED, comments=[remark], author="rita")
    assert [one.body for one in side.open().pulls.read(number).comments] == ["fix-1.txt:77: Why?"]


def test_who_may_not_approve_is_told_so(side: RemoteSide) -> None:
    number, _ = opened(side)
    with pytest.raises(SmError, match="does not let 'sm' approve"):
        side.open().pulls.review(number, ReviewState.APPROVED, author=BOT)
    for _ in range(2):
        side.open().pulls.review(number, ReviewState.APPROVED, author="rita")
    with pytest.raises(HeadMovedError):
        side.open().pulls.review(number, ReviewState.APPROVED, author="otto", head="0" * 40)


def test_a_request_for_changes_that_is_not_taken_is_told(side: RemoteSide) -> None:
    number, _ = opened(side)
    side.site.faults = [Fault(part="/notes", reply=Reply(202, {"summary": ["no"]}), times=9)]
    with pytest.raises(SmError, match="make it on the page"):
        side.open().pulls.review(number, ReviewState.CHANGES_REQUESTED, author="rita")
