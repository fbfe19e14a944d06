"""What people say on GitHub: remarks whose code is gone, and much that strangers have written."""

from __future__ import annotations

import pytest

from sm.adapters.forge.model import BOT, Batch, InlineComment, PullRequest, Review, ReviewState
from sm.plugins.forges.github.graphql import discussion
from sm.plugins.forges.web import request
from sm.plugins.forges.web.errors import LimitedError
from tests.forges.server import Fault, Reply
from tests.forges.sides import RemoteSide, age, github_of, opened
from tests.forges.state import Inline, Opinion

LONG = "\u2620" * 65_536
"""The longest text that GitHub takes, as the most bytes."""
WISH = ReviewState.CHANGES_REQUESTED


def remarks_of(side: RemoteSide, number: int) -> list[Inline]:
    """The remarks on a pull request, as the server has them."""
    pull = side.state.entries[number].pull
    assert pull
    return pull.inline


def wish(side: RemoteSide, number: int) -> str:
    """A trusted request for changes, with a remark; its id."""
    side.admit("rita")
    remark = InlineComment("fix-1.txt", 1, "Divide by 100.")
    made = side.open().pulls.review(number, WISH, "Please mend it.", [remark], author="rita")
    age(side, 10)
    return made.id


def interrupt(side: RemoteSide, number: int, count: int, text: str = "Noise") -> None:
    """A stranger reviews so often, each time with a remark on a line."""
    pull = side.state.entries[number].pull
    assert pull
    for _ in range(count):
        ident, at = side.state.next_id(), side.state.clock()
        pull.reviews.append(Opinion(ident, "eve", "COMMENTED", text, pull.head, at))
        pull.inline.append(Inline(ident, "a.txt", 1, text, side.state.next_id(), author="eve"))
    side.state.touch(side.state.entries[number])


def standing(seen: Batch | PullRequest, ident: str) -> Review:
    """The review with that id."""
    pull = seen.pulls[0] if isinstance(seen, Batch) else seen
    return next(one for one in pull.reviews if one.id == ident)


# Remarks on lines


def test_a_remark_whose_code_has_changed_is_outdated_and_stops_no_look(side: RemoteSide) -> None:
    number, _ = opened(side)
    ident = wish(side, number)
    [first] = remarks_of(side, number)
    remarks_of(side, number).extend(
        [
            Inline(int(ident), "a.txt", 7, "A typo.", 9001, author="rita"),
            Inline(int(ident), "b.txt", 0, "Too long.", 9002, author="rita", on_file=True),
        ]
    )
    first.outdated = True
    since = side.open().observe()
    assert side.open().observe(since).pulls == since.pulls
    assert since.problems == ()
    said = standing(side.open().pulls.read(number), ident).comments
    found = {(one.path, one.line, one.outdated) for one in said}
    assert found == {("fix-1.txt", 1, True), ("a.txt", 7, False), ("b.txt", 0, False)}


def test_a_remark_that_cannot_be_read_costs_no_other(side: RemoteSide) -> None:
    number, _ = opened(side)
    ident = wish(side, number)
    respond = side.site.respond
    side.site.respond = lambda asked: (
        _spoil(respond(asked)) if "/comments" in asked.path else (respond(asked))
    )
    since = side.open().observe()
    assert standing(since, ident).state is WISH
    assert any("is passed over" in one for one in since.problems)
    side.site.respond = respond
    said = standing(side.open().pulls.read(number), ident).comments
    assert [one.body for one in said] == ["Divide by 100."]


def _spoil(reply: Reply) -> Reply:
    """The list with entries that are none."""
    return Reply(reply.status, [None, {"id": "x"}, *(reply.data or [])], reply.headers)


def test_an_edit_of_a_remark_is_seen_behind_a_page_of_strangers(side: RemoteSide) -> None:
    number, _ = opened(side)
    ident = wish(side, number)
    since = side.open().observe()
    age(side, 60)
    pull = side.state.entries[number].pull
    assert pull
    side.state.edit_review(pull, "rita", "Divide by 100.", "Divide by 1000.")
    age(side, 10)
    interrupt(side, number, 130)
    for one in remarks_of(side, number)[1:]:
        one.saved = side.state.clock(), "eve"
    seen = side.open().observe(since)
    assert standing(seen, ident).revision != standing(since, ident).revision


# What strangers write between


def test_a_request_for_changes_is_seen_behind_hundreds_of_reviews(side: RemoteSide) -> None:
    number, _ = opened(side)
    ident = wish(side, number)
    interrupt(side, number, 230)
    since = side.open().observe()
    assert standing(since, ident).state is WISH
    interrupt(side, number, 1)
    assert standing(side.open().observe(since), ident).state is WISH
    whole = next(one for one in side.open().pulls.read_reviews(number) if one.id == ident)
    assert whole.body == "Please mend it."
    assert [one.body for one in whole.comments] == ["Divide by 100."]


def test_a_thread_that_is_settled_is_found_behind_hundreds(side: RemoteSide) -> None:
    number, _ = opened(side)
    interrupt(side, number, 130)
    ident = wish(side, number)
    last = remarks_of(side, number)[-1]
    last.resolved = True
    answer = Inline(int(ident), "fix-1.txt", 1, "And round.", 9001, author="rita")
    answer.answers = last.id
    remarks_of(side, number).append(answer)
    assert standing(side.open().pulls.read(number), ident).comments == ()
    last.resolved = False
    said = standing(side.open().pulls.read(number), ident).comments
    assert [one.body for one in said] == ["Divide by 100.", "And round."]


def test_texts_that_are_too_long_for_one_answer_keep_nothing_from_being_read(
    side: RemoteSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As 70 remarks of a stranger are, each as long as GitHub takes it: here to a smaller scale."""
    monkeypatch.setattr(request.SentRequest, "limit", request.BODY_LIMIT // 64)
    number, _ = opened(side)
    ident = wish(side, number)
    since = side.open().observe()
    interrupt(side, number, 70, LONG[: len(LONG) // 32])
    entry = side.state.entries[number]
    for _ in range(70):
        side.state.say(entry, "eve", LONG[: len(LONG) // 32])
    side.state.say(entry, "rita", "the last word")
    for seen in (side.open().observe(since), side.open().observe()):
        assert (standing(seen, ident).state, seen.problems) == (WISH, ())
    forge = side.open()
    assert standing(forge.pulls.read(number), ident).body == "Please mend it."
    whole = next(one for one in forge.pulls.read_reviews(number) if one.id == ident)
    assert [one.body for one in whole.comments] == ["Divide by 100."]
    assert forge.pulls.read_comments(number)[-1].body == "the last word"


def test_an_answer_is_seen_behind_hundreds_of_comments(side: RemoteSide) -> None:
    number = side.open().issues.add("a", labels=["in-progress"], author="ada").number
    side.open().issues.comment(number, "the answer", author="ada")
    entry = side.state.entries[number]
    for count in range(discussion.SIZE + 30):
        side.state.say(entry, "eve", f"noise {count}")
    [issue] = side.open().observe().issues
    assert issue.comments[0].author == "ada"
    said = side.open().issues.read_comments(number)
    assert (said[0].body, len(said)) == ("the answer", discussion.SIZE + 31)


def test_an_issue_that_is_not_at_work_takes_one_query_however_much_was_said(
    side: RemoteSide,
) -> None:
    number = side.open().issues.add("a", author="ada").number
    for count in range(discussion.SIZE + 30):
        side.state.say(side.state.entries[number], "eve", f"noise {count}")
    before = len(side.site.asked)
    [issue] = side.open().observe().issues
    assert len(issue.comments) == discussion.SIZE
    assert side.site.lines(before).count("POST /graphql") == 1


# Nothing, and limits


def test_an_element_of_a_list_may_be_null_everywhere(side: RemoteSide) -> None:
    number, head = opened(side)
    ident = wish(side, number)
    issue = side.open_as("ada").issues.add("a", "old", ["backlog"], author="ada").number
    side.open().issues.comment(issue, "Hello.", author="ada")
    side.state.run_of(head, "build").word = "success"
    right, source = side.open().observe(), side.open().issues.read_source(issue)
    github_of(side).holes = True
    seen = side.open().observe()
    assert seen.issues == right.issues
    assert seen.problems == ()
    assert side.open().issues.read_source(issue) == source
    [pull], [before] = seen.pulls, right.pulls
    assert pull.check.state is before.check.state
    assert standing(pull, ident).state is WISH
    assert standing(side.open().pulls.read(number), ident).body == "Please mend it."
    assert [one.body for one in side.open().issues.read_comments(issue)] == ["Hello."]


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "120"}])
def test_a_limit_of_graphql_is_an_answer_of_200_and_no_refusal(
    side: RemoteSide, headers: dict[str, str]
) -> None:
    number, head = opened(side)
    side.state.run_of(head, "build").word = "success"
    side.state.has_queue = True
    fault = {"type": "RATE_LIMIT", "code": "graphql_rate_limit", "message": "exceeded"}
    limited = Fault(part="/graphql", reply=Reply(200, {"errors": [fault]}, headers))
    side.site.faults = [limited]
    with pytest.raises(LimitedError):
        side.open().observe()
    before = len(side.site.asked)
    with pytest.raises(LimitedError):
        side.open().observe()
    assert side.site.lines(before) == [], "until the limit is over"
    with pytest.raises(LimitedError):
        side.open().pulls.merge(number, author=BOT)
    assert side.open().pause_s() > 50


def test_a_merge_queue_whose_limit_is_reached_has_not_refused(side: RemoteSide) -> None:
    number, head = opened(side)
    side.state.run_of(head, "build").word = "success"
    side.state.has_queue = True
    respond = side.site.respond
    fault = {"type": "RATE_LIMIT", "code": "graphql_rate_limit", "message": "exceeded"}

    side.site.respond = lambda asked: (
        Reply(200, {"errors": [fault]}) if b"mutation" in asked.body else respond(asked)
    )
    with pytest.raises(LimitedError):
        side.open().pulls.merge(number, author=BOT)


def test_ids_beyond_32_bits_tell_reviews_apart(side: RemoteSide) -> None:
    """GraphQL's whole numbers are smaller: it has `fullDatabaseId` for them."""
    side.state.last_id = 3_000_000_000
    number, _ = opened(side)
    first = wish(side, number)
    second = wish(side, number)
    assert first != second
    pull = side.open().pulls.read(number)
    assert {one.id for one in pull.reviews} == {first, second}
    assert [len(one.comments) for one in pull.reviews] == [1, 1]
