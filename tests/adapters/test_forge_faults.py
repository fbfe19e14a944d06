"""What goes wrong between us and a forge over HTTP, in each dialect: all stands there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.errors import (
    AtWorkError,
    BaseMovedError,
    ConflictError,
    MergeRefusedError,
    UnreachableError,
)
from sm.adapters.forge.kinds import kind_of, open_forge
from sm.adapters.forge.model import (
    BOT,
    Batch,
    CheckState,
    InlineComment,
    IssueState,
    PullRequest,
    PullState,
    ReviewState,
)
from sm.adapters.forge.protocol import Forge
from sm.base.errors import SmError, TemporaryError
from sm.base.text import CONTROL
from sm.plugins.forges.rest import checks
from sm.plugins.forges.web import client
from sm.plugins.forges.web.errors import LimitedError, TokenRefusedError
from tests.forges.gitea import Gitea
from tests.forges.server import Asked, Fault, Reply
from tests.forges.sides import KINDS, RemoteSide, age, opened, remote_side
from tests.helpers import git
from tests.hub import make_hub

MEGABYTE = 1_000_000
HEARD = ["the first word", "the last word"]
NOISE = "\x1b[2J\x9b31m\u202e\x07"


@pytest.fixture(params=KINDS)
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side(request.param, make_hub(tmp_path), tmp_path / "kept") as side:
        yield side


# Writing


BAD_GATEWAY = Reply(502, raw=b"<html>Bad Gateway</html>", headers={"Content-Type": "text/html"})
IMPATIENT_S = 2.0
"""So long an answer is waited for that comes late. By then even a slow machine has done the act."""
TROUBLES: tuple[dict[str, object], ...] = (
    {"drop": True},
    {"drop": True, "after": True},
    {"reply": BAD_GATEWAY},
    {"reply": BAD_GATEWAY, "after": True},
    {"late_s": 2 * IMPATIENT_S},
    {"cut": True},
    {"garble": True},
)
"""What may happen to a POST: it is lost, or only its answer is, or that comes late or in part."""


def insist(act: Callable[[], object]) -> object:
    """What comes of it in the end; each pass tries what was not possible before."""
    for _ in range(3):
        try:
            return act()
        except TemporaryError as error:
            last = error
    raise last


@pytest.mark.sweep
def test_what_is_made_stands_there_once_whatever_happens_to_the_request(
    side: RemoteSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient_s = client.READ_S
    issue = side.open().issues.add("a", author="ada").number
    pull, _ = opened(side)
    for count, trouble in enumerate(TROUBLES):
        branch = f"fix/x{count}"
        side.push(branch, f"x{count}.txt")
        read_s = IMPATIENT_S if "late_s" in trouble else patient_s
        monkeypatch.setattr(client, "READ_S", read_s)
        for act in _makings(side, issue, pull, branch, f"m{count}"):
            fault = Fault(method="POST", **trouble)  # type: ignore[arg-type]  # of several types
            side.site.faults = [fault]
            insist(act)
            assert fault.times == 0
        side.site.faults = []
        offered = [one for _, one in side.state.pulls() if one.branch == branch]
        assert len(offered) == 1, trouble
    marks = [f"m{count}" for count in range(len(TROUBLES))]
    assert [one.marker for one in side.open().issues.read(issue).comments] == marks
    assert [one.marker for one in side.open().pulls.read(pull).comments] == marks
    said = sum(len(one.comments) for one in side.state.entries.values())
    assert said == 2 * len(marks)


def _makings(
    side: RemoteSide, issue: int, pull: int, branch: str, mark: str
) -> tuple[Callable[[], object], ...]:
    """All that makes something and leaves a trace."""
    return (
        lambda: side.open().issues.comment(issue, "Hello.", author=BOT, marker=mark),
        lambda: side.open().pulls.comment(pull, "Hello.", author=BOT, marker=mark),
        lambda: side.open().pulls.open(branch, "main", "a", author=BOT),
    )


@pytest.mark.parametrize("trouble", [{"drop": True}, {"reply": BAD_GATEWAY}, {"garble": True}])
def test_what_says_how_things_shall_be_is_so_whatever_happens_to_its_answer(
    side: RemoteSide, trouble: dict[str, object]
) -> None:
    issue = side.open().issues.add("a", labels=["backlog"], author="ada").number
    number, head = opened(side)
    other, _ = opened(side, "fix/2")
    side.finish(head, CheckState.SUCCESS)

    def do(act: Callable[[Forge], object]) -> None:
        lost = [
            Fault(method=method, after=True, **trouble)  # type: ignore[arg-type]
            for method in ("POST", "PUT", "PATCH", "DELETE")
        ]
        side.site.faults = lost
        insist(lambda: act(side.open()))
        assert any(one.times == 0 for one in lost)
        side.site.faults = []

    do(lambda forge: forge.issues.add_label(issue, "blocked"))
    do(lambda forge: forge.issues.remove_label(issue, "backlog"))
    do(lambda forge: forge.issues.close(issue))
    do(lambda forge: forge.pulls.close(other))
    do(lambda forge: forge.pulls.merge(number, head=head, author=BOT))
    found = side.open().issues.read(issue)
    assert (found.state, found.labels) == (IssueState.CLOSED, ("blocked",))
    assert side.open().pulls.read(other).state is PullState.CLOSED
    assert side.open().pulls.read(number).state is PullState.MERGED
    merges = git(side.hub.repository.bare, "rev-list", "--merges", "--count", "main")
    assert merges == "1"


def test_what_has_no_trace_is_told_and_not_made_twice(side: RemoteSide) -> None:
    number, _ = opened(side)
    before = len(side.state.entries)
    for act in (
        lambda: side.open().issues.add("b", author=BOT),
        lambda: side.open().pulls.review(number, ReviewState.COMMENTED, "Hm.", author="rita"),
    ):
        side.site.faults = [Fault(method="POST", drop=True, after=True)]
        with pytest.raises(UnreachableError, match="may have been done or not"):
            act()
    assert len(side.state.entries) == before + 1


# Merging


NOT_NOW = {
    "github": (405, "Base branch was modified. Review and try the merge again."),
    "forgejo": (405, "Please try again later"),
    "gitea": (409, "merge push out of date"),
    "gitlab": (409, "SHA does not match HEAD of source branch"),
}
REFUSED = {
    "github": (405, "Merge commits are not allowed on this repository."),
    "forgejo": (405, "User not allowed to merge PR"),
    "gitea": (409, "PushRejected with remote message: no"),
    "gitlab": (422, "Branch cannot be merged"),
}


def green(side: RemoteSide) -> tuple[int, str]:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    return number, head


def refuse_once(side: RemoteSide, status: int, words: str) -> None:
    side.site.faults = [Fault(part="/merge", reply=Reply(status, {"message": words}))]
    side.site.faults[0].method = "POST" if side.kind in ("forgejo", "gitea") else "PUT"


def test_a_merge_that_is_refused_because_others_merge_is_made_by_the_next_try(
    side: RemoteSide,
) -> None:
    number, head = green(side)
    refuse_once(side, *NOT_NOW[side.kind])
    with pytest.raises(BaseMovedError):
        side.open().pulls.merge(number, head=head, author=BOT)
    assert side.open().pulls.merge(number, head=head, author=BOT).state is PullState.MERGED


def test_a_merge_that_is_refused_for_good_is_no_moved_base(side: RemoteSide) -> None:
    number, head = green(side)
    refuse_once(side, *REFUSED[side.kind])
    with pytest.raises(MergeRefusedError):
        side.open().pulls.merge(number, head=head, author=BOT)


def test_a_conflict_is_told_as_one_and_what_is_still_looked_for_is_none(side: RemoteSide) -> None:
    number, head = green(side)
    if isinstance(side.dialect, Gitea):
        side.dialect.asked_until_sure = 4
    elif side.kind == "github":
        side.state.unsure = True
        refuse_once(side, 405, "Pull Request is not mergeable")
    else:
        pytest.skip("GitLab has a word for it")
    with pytest.raises(BaseMovedError):
        side.open().pulls.merge(number, head=head, author=BOT)
    side.state.unsure = False
    git(side.hub.repository.clone, "checkout", "-q", "main")
    side.hub.repository.commit("fix-1.txt", "theirs\n")
    with pytest.raises(ConflictError):
        side.open().pulls.merge(number, head=head, author=BOT)


def test_a_check_that_begins_before_the_merge_is_waited_for(side: RemoteSide) -> None:
    number, head = opened(side)
    with pytest.raises(AtWorkError):
        side.open().pulls.merge(number, head=head, author=BOT)
    side.finish(head, CheckState.SUCCESS)
    assert side.open().pulls.merge(number, head=head, author=BOT).state is PullState.MERGED


# Reading


def test_a_storm_of_errors_changes_nothing(side: RemoteSide) -> None:
    issue = side.open().issues.add("a", author="ada").number
    since = side.open().observe()
    for status in (500, 502, 503, 504):
        side.site.faults = [Fault(times=99, reply=Reply(status))]
        for act in (
            lambda: side.open().observe(since),
            lambda: side.open().observe(),
            lambda: side.open().issues.comment(issue, "Hello.", author=BOT, marker="m"),
        ):
            with pytest.raises(UnreachableError):
                act()
    side.site.faults = []
    assert side.open().observe(since).issues == since.issues
    assert side.open().issues.comment(issue, "Hello.", author=BOT, marker="m")
    assert len(side.open().issues.read(issue).comments) == 1


NO_ANSWERS: tuple[dict[str, object], ...] = (
    {"garble": True},
    {"cut": True},
    {"reply": Reply(304)},
    {"reply": Reply(200, raw=b"<html>Sign in</html>")},
)


@pytest.mark.sweep
def test_an_answer_that_is_no_answer_delays_and_loses_nothing(side: RemoteSide) -> None:
    """Each request of a look in turn: then the look fails as a whole, or it is right."""
    side.admit("ada", "rita")
    issue = side.open().issues.add("a", labels=["backlog"], author="ada").number
    number, head = opened(side)
    first = side.open().observe()
    side.open().issues.comment(issue, "Hello.", author="rita")
    side.open().pulls.review(number, ReviewState.APPROVED, author="rita")
    side.finish(head, CheckState.SUCCESS)
    for since in (None, first):
        begun = len(side.site.asked)
        right = side.open().observe(since)
        assert right.pulls[0].reviews
        assert right.issues[0].comments
        assert right.problems == ()
        lines = side.site.lines(begun)
        for line, trouble in product(dict.fromkeys(lines), NO_ANSWERS):
            side.site.faults = [Fault(part=line, **trouble)]
            seen, why = _try_to_observe(side, since)
            if seen:
                assert (seen.issues, _list_pulls(seen)) == (right.issues, _list_pulls(right)), line
            else:
                assert "cannot be read" in why or "(304)" in why
            side.site.faults = []
    assert side.open().observe(first).pulls == right.pulls


def _list_pulls(seen: Batch) -> list[PullRequest]:
    """The pull requests, without what tells of edits: the way round by REST does not know it."""
    return [
        structs.replace(
            pull, reviews=tuple(structs.replace(one, revision="") for one in pull.reviews)
        )
        for pull in seen.pulls
    ]


def _try_to_observe(side: RemoteSide, since: Batch | None) -> tuple[Batch | None, str]:
    """An observation, or why there is none."""
    try:
        return side.open().observe(since), ""
    except SmError as error:
        return None, error.message


def test_lists_that_change_while_they_are_read_are_right_in_the_end(side: RemoteSide) -> None:
    for count in range(120):
        side.state.add(f"t{count}", "", "ada")
    age(side)
    respond, entries = side.site.respond, list(side.state.entries.values())

    def change(asked: Asked) -> Reply:
        """Between two pages one is closed, another edited, and one is new."""
        if asked.method == "GET" and asked.path.endswith("/issues") and len(entries) > 90:
            side.state.close(entries.pop())
            side.state.edit(entries.pop(0), "ada", "edited", None)
            side.state.add("new", "", "ada")
        return respond(asked)

    side.site.respond = change
    since = side.open().observe()
    side.site.respond = respond
    age(side)
    seen = {one.number: one for one in side.open().observe(since).issues}
    kept = {one.number: one for one in side.state.entries.values()}
    wrong = [
        number
        for number, one in kept.items()
        if number in seen and (seen[number].state is IssueState.OPEN) is not one.is_open
    ]
    assert wrong == []
    assert {number for number, one in kept.items() if one.title == "edited"} <= {
        number for number, one in seen.items() if one.title == "edited"
    }
    whole = {one.number for one in side.open().observe().issues}
    assert whole == set(kept)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_log_that_is_lost_keeps_no_failure_from_the_agent(
    side: RemoteSide, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "LOG_S", 0.0)
    number, head = opened(side)
    side.finish(head, CheckState.FAILURE, "unit", "it broke\n")
    part = {"github": "/store/", "gitlab": "/trace"}.get(side.kind, "/logs")
    side.site.faults = [Fault(part=part, reply=Reply(status, {"message": "no"}), times=99)]
    found = side.open().pulls.read(number).check
    assert found.state is CheckState.FAILURE
    assert "cannot read the log: " in found.log
    assert str(status) in found.log or "token" in found.log


def test_a_log_that_is_not_to_be_had_for_a_moment_is_asked_for_again(side: RemoteSide) -> None:
    number, head = opened(side)
    side.finish(head, CheckState.FAILURE, "unit", "it broke\n")
    part = {"github": "/store/", "gitlab": "/trace"}.get(side.kind, "/logs")
    side.site.faults = [Fault(part=part, reply=Reply(500, {"message": "no"}), times=99)]
    with pytest.raises(UnreachableError):
        side.open().pulls.read(number)
    side.site.faults = []
    assert "it broke" in side.open().pulls.read(number).check.log


def test_a_pull_request_that_was_deleted_stops_no_look(side: RemoteSide) -> None:
    number, _ = opened(side)
    other, _ = opened(side, "fix/2")
    issue = side.open().issues.add("a", author="ada").number
    age(side)
    since = side.open().observe()
    [deleted] = [
        key for key, one in side.state.entries.items() if one.pull and one.number == number
    ]
    del side.state.entries[deleted]
    side.open().issues.comment(issue, "Hello.", author="ada")
    seen = side.open().observe(since)
    assert other in [pull.number for pull in seen.pulls]
    assert [one.body for one in seen.issues[-1].comments] == ["Hello."]


def test_comments_that_are_gone_stop_no_look(side: RemoteSide) -> None:
    issue = side.open().issues.add("a", author="ada").number
    side.open().issues.comment(issue, "Hello.", author="ada")
    part = f"/issues/{issue}/{'notes' if side.kind == 'gitlab' else 'comments'}"
    side.site.faults = [Fault(part=part, reply=Reply(404, {"message": "Not Found"}))]
    assert [one.number for one in side.open().observe().issues] == [issue]


def test_who_is_assigned_to_an_issue_is_observed(side: RemoteSide) -> None:
    number = side.open().issues.add("a", author="ada").number
    side.state.entries[number].assignees = ["rita", "otto"]
    assert side.open().observe().issues[0].assignees == ("rita", "otto")


# Limits


SECONDARY = {"message": "You have exceeded a secondary rate limit."}
LIMITS: tuple[Reply, ...] = (
    Reply(429, raw=b"Retry later\n", headers={"Retry-After": "120"}),
    Reply(429, {"message": "429 Too Many Requests"}),
    Reply(403, SECONDARY, {"Retry-After": "60"}),
    Reply(403, SECONDARY),
    Reply(403, {"message": "no"}, {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0"}),
    Reply(429, {"message": "no"}, {"RateLimit-Limit": "60", "RateLimit-Remaining": "0"}),
)


def test_a_limit_is_waited_out_and_what_was_refused_is_made_once(side: RemoteSide) -> None:
    issue, marks = side.open().issues.add("a", author="ada").number, list[str]()
    for (number, reply), method in product(enumerate(LIMITS), ("GET", "POST")):
        for name in ("X-RateLimit", "RateLimit"):
            if f"{name}-Remaining" in reply.headers:
                reply.headers[f"{name}-Reset"] = str(int(side.state.clock()) + 90)
        mark = f"{method}{number}"
        marks.append(mark)
        side.site.faults = [Fault(method=method, reply=reply)]
        with pytest.raises(LimitedError, match="takes no more requests until"):
            side.open().issues.comment(issue, "Hello.", author=BOT, marker=mark)
        assert side.open_as(BOT).pause_s() > 30
        asked = len(side.site.asked)
        with pytest.raises(LimitedError):
            side.open().observe()
        assert len(side.site.asked) == asked, "nothing is sent meanwhile"
        (side.folder / "quota.json").unlink()  # its time is over
        assert side.open().issues.comment(issue, "Hello.", author=BOT, marker=mark)
        assert not side.open().issues.comment(issue, "Hello.", author=BOT, marker=mark)
    assert [one.marker for one in side.open().issues.read(issue).comments] == marks


def test_a_short_limit_is_waited_for(side: RemoteSide) -> None:
    issue = side.open().issues.add("a", author="ada").number
    side.site.faults = [Fault(method="POST", reply=Reply(429, headers={"Retry-After": "0"}))]
    assert side.open().issues.comment(issue, "Hello.", author=BOT, marker="m")
    assert len(side.open().issues.read(issue).comments) == 1


JUNK: tuple[dict[str, str], ...] = (
    {"X-Total-Count": "\xb2", "X-Next-Page": "\xb2", "Link": "<>; rel=next"},
    {"X-Total-Count": "9" * 5000, "X-Next-Page": "9" * 5000},
    {"Date": "Mon, 99 Foo 99999 99:99:99 +9999", "ETag": "x[2J"},
    {"Date": "", "X-RateLimit-Limit": "-1", "X-RateLimit-Remaining": "x"},
    {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "9" * 11},
)


def test_junk_in_headers_stops_nobody(side: RemoteSide) -> None:
    side.open().issues.add("a", author="ada")
    respond, junk = side.site.respond, dict[str, str]()

    def answer(asked: Asked) -> Reply:
        reply = respond(asked)
        return Reply(reply.status, reply.data, reply.headers | junk, reply.raw)

    side.site.respond = answer
    for headers in JUNK:
        junk.clear()
        junk.update(headers)
        since = side.open().observe()
        assert [one.title for one in since.issues] == ["a"]
        assert side.open().observe(since).issues == since.issues
        assert side.open_as(BOT).pause_s() < 7 * 3600
        (side.folder / "quota.json").unlink()


# The token, the repository, labels


def test_a_revoked_token_is_told_and_its_successor_is_used(side: RemoteSide) -> None:
    forge = open_forge(side.project, None, side.folder)
    forge.issues.add("a", author=BOT)
    del side.state.tokens["secret-of-sm-4f1d"]
    with pytest.raises(TokenRefusedError, match="does not accept the token"):
        forge.observe()
    side.token_file(BOT).write_text("a-new-token")
    side.state.tokens["a-new-token"] = BOT
    assert forge.observe().issues


def test_a_renamed_repository_is_followed_by_its_id_and_another_is_not_taken_for_it(
    side: RemoteSide,
) -> None:
    configured, issue = side.project, side.open().issues.add("a", author="ada").number
    since = open_forge(configured, None, side.folder).observe()
    side.state.name = "harbour/new"
    seen = open_forge(configured, None, side.folder).observe()
    assert [one.number for one in seen.issues] == [issue]
    assert any("is called 'harbour/new' now" in problem for problem in seen.problems)
    begun = len(side.site.asked)
    forge = open_forge(configured, None, side.folder)
    later = forge.observe(structs.replace(since, problems=seen.problems))
    assert later.problems == seen.problems, "it is told until all is read anew"
    assert forge.issues.comment(issue, "Hello.", author=BOT, marker="m")
    assert not [line for line in side.site.lines(begun) if "harbor" in line]


def test_a_label_that_was_renamed_is_told_and_keeps_nothing_from_its_end(side: RemoteSide) -> None:
    names = ["backlog", "in-progress", "blocked"]
    issue = side.open().issues.add("a", labels=names[:2], author="ada").number
    side.state.labels = ["backlog", "doing", "stuck"]
    side.state.entries[issue].labels = ["backlog", "doing"]
    [told] = kind_of(side.project.forge).find_problems(
        side.project, "git@code.example.com:harbor/harb.git"
    )
    assert "has no label 'blocked', 'in-progress'" in told
    side.open().issues.remove_label(issue, "in-progress")
    side.open().issues.add_label(issue, "blocked")
    assert set(side.open().observe().issues[0].labels) == {"backlog", "doing", "blocked"}


def test_a_branch_that_is_gone_and_one_that_was_pushed_anew_are_seen(side: RemoteSide) -> None:
    number, old = opened(side)
    side.finish(old, CheckState.SUCCESS)
    side.open().pulls.review(number, ReviewState.APPROVED, author="rita")
    since = side.open().observe()
    clone = side.hub.repository.clone
    side.hub.check_out("fix/1")
    git(clone, "commit", "-q", "--amend", "-m", "anew")
    git(clone, "push", "-q", "--force", "origin", "fix/1")
    new = git(clone, "rev-parse", "HEAD")
    age(side)
    [pull] = side.open().observe(since).pulls
    assert (pull.head, pull.check.state) == (new, CheckState.PENDING)
    assert [one.head for one in pull.reviews] == [old], "it was of another commit"
    git(clone, "push", "-q", "origin", ":fix/1")
    assert side.open().branch_head("fix/1") == ""
    assert side.open().observe(since).pulls[0].number == number
    side.open().pulls.close(number)
    assert side.open().observe(since).pulls[0].state is PullState.CLOSED
    with pytest.raises(SmError):
        side.open().pulls.merge(number, author=BOT)


# Hostile words


def test_hostile_words_are_bounded_and_harmless_where_they_enter(side: RemoteSide) -> None:
    bad = f"{NOISE}{'A' * 5000}\r\nsm: forged\u2028"
    entry = side.state.add(bad, bad, f"eve{NOISE}")
    side.state.label(entry, [f"l{count}{NOISE}" * 100 for count in range(300)])
    side.state.say(entry, bad, bad)
    number, head = opened(side)
    mine = next(one for one in side.state.entries.values() if one.pull)
    mine.title = bad
    remark = InlineComment("fix-1.txt", 1, bad)
    side.open().pulls.review(number, ReviewState.COMMENTED, bad, [remark], author="rita")
    side.finish(head, CheckState.FAILURE, bad, bad)
    side.state.runs[-1].text = bad
    seen = side.open().observe()
    issue = next(one for one in seen.issues if one.number == entry.number)
    [pull] = seen.pulls
    lines = (issue.title, issue.author, *issue.labels, pull.title, pull.check.step)
    for words in (*lines, issue.comments[0].author, pull.author):
        assert not CONTROL.search(words), "a terminal would act upon it"
        assert len(words) <= 1000
    assert len(issue.labels) <= 100
    whole = side.open().pulls.read(number)
    assert len(whole.check.url) <= 1000
    assert "\x1b" not in whole.check.log, "it has no colours"
    assert [one.number for one in side.open().issues.find()[0]] == [entry.number]


@pytest.mark.sweep
def test_much_text_of_a_stranger_keeps_nothing_else_from_being_read(side: RemoteSide) -> None:
    megabyte = "\u2620" * (MEGABYTE // 3)
    first = side.state.add("A", "the first", "ann")
    loud = side.state.add("B", "with comments", "ann")
    side.state.say(loud, "ann", "the first word")
    seen = side.open().observe()
    for _ in range(20):
        side.state.add("Noise", megabyte, "eve")
        side.state.say(loud, "eve", megabyte)
    side.state.say(loud, "ann", "the last word")
    last = side.state.add("C", "the last", "ann")
    for since in (seen, None):
        found = side.open().observe(since)
        assert {one.number for one in found.issues} == set(side.state.entries)
        texts = {one.number: one.body for one in found.issues}
        assert (texts[first.number], texts[last.number]) == ("the first", "the last")
        said = next(one.comments for one in found.issues if one.number == loud.number)
        if side.kind in ("forgejo", "gitea"):  # they give all comments on an issue, or none
            assert [one.body for one in said] == (["the first word"] if since else [])
            assert any(f"number {loud.number} is passed over" in one for one in found.problems)
        else:
            assert [one.body for one in said if one.author == "ann"] == HEARD
            assert found.problems == ()
