"""How GitLab merges: what holds a merge request, and merge trains."""

from __future__ import annotations

import pytest
from msgspec import structs

from sm.adapters.forge.errors import (
    BaseMovedError,
    HeadMovedError,
    MergeRefusedError,
)
from sm.adapters.forge.kinds import open_forge
from sm.adapters.forge.model import (
    BOT,
    Batch,
    CheckState,
    Hold,
    PullState,
)
from tests.forges.gitlab import leave_train
from tests.forges.server import Asked, Fault, Reply
from tests.forges.sides import RemoteSide, opened
from tests.plugins.forges.gitlab.offers import dialect_of

# Merges


def ready(side: RemoteSide) -> tuple[int, str]:
    number, head = opened(side)
    side.finish(head, CheckState.SUCCESS)
    return number, head


def push_in_the_midst(side: RemoteSide, part: str) -> None:
    """Have another commit pushed as soon as the forge is asked to merge."""
    respond = side.site.respond

    def answer(asked: Asked) -> Reply:
        if part in asked.path and asked.method != "GET":
            side.push("fix/1", content="more\n")
            return Reply(409, {"message": "SHA does not match HEAD of source branch"})
        return respond(asked)

    side.site.respond = answer


def test_gitlab_is_waited_for_while_it_finds_out(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).asked_until_sure = 3
    assert side.open().pulls.merge(number, author=BOT).state is PullState.MERGED


def test_while_gitlab_does_not_find_out_the_merge_stays_to_be_done(side: RemoteSide) -> None:
    number, _ = ready(side)
    side.state.unsure = True
    with pytest.raises(BaseMovedError, match="still finding out"):
        side.open().pulls.merge(number, author=BOT)
    assert side.open().pulls.read(number).state is PullState.OPEN


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        ("not_approved", "405 Method Not Allowed: the project asks for an approval"),
        ("discussions_not_resolved", "a thread is not resolved"),
        ("code_owners_approval", "an approval by an owner of the code is missing"),
        ("a_new_word", "405 Method Not Allowed: a_new_word"),
    ],
)
def test_a_refusal_is_shown_in_gitlabs_words_and_ours(
    side: RemoteSide, standing: str, said: str
) -> None:
    number, _ = ready(side)
    dialect_of(side).standing = standing
    with pytest.raises(MergeRefusedError, match=said):
        side.open().pulls.merge(number, author=BOT)


def test_a_draft_is_not_merged(side: RemoteSide) -> None:
    number, _ = ready(side)
    side.state.entries[-number].title = "Draft: a"
    with pytest.raises(MergeRefusedError, match="it is a draft"):
        side.open().pulls.merge(number, author=BOT)


def held(side: RemoteSide, since: Batch | None = None) -> tuple[Hold, str]:
    [pull] = side.open().observe(since).pulls
    return pull.hold, pull.held


def test_a_word_of_gitlabs_that_is_not_known_is_told(side: RemoteSide) -> None:
    ready(side)
    dialect_of(side).standing = "a_new_word"
    assert held(side) == (Hold.BLOCKED, "GitLab says 'a_new_word', which sm does not know")


def test_a_branch_that_must_be_rebased_is_behind(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).merge_method = "rebase_merge"
    assert held(side) == (Hold.NONE, "")
    side.push("main", "other.txt")
    assert held(side) == (Hold.BEHIND, "the branch is behind 'main'")
    assert not side.open().pulls.read(number).conflicts
    with pytest.raises(MergeRefusedError, match="it has to be rebased on 'main'"):
        side.open().pulls.merge(number, author=BOT)


def test_what_is_in_the_way_of_a_merge_is_known_before(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).standing = "not_approved"
    said = "the project asks for an approval that is missing"
    seen = side.open().observe()
    assert (seen.pulls[0].hold, seen.pulls[0].held) == (Hold.BLOCKED, said)
    assert side.open().pulls.read(number).held == said
    dialect_of(side).standing = "mergeable"
    side.state.unsure = True
    assert held(side, seen) == (Hold.BLOCKED, said), "as it was, while GitLab is finding out"
    side.state.unsure = False
    assert held(side, seen) == (Hold.NONE, "")


def test_a_branch_without_commits_is_no_conflict(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).standing = "commits_status"
    assert held(side) == (Hold.BLOCKED, "its branch is gone or empty")
    assert not side.open().pulls.read(number).conflicts


def test_a_merge_waits_for_a_pipeline_that_has_begun_since(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).standing = "ci_still_running"
    with pytest.raises(BaseMovedError, match="is still running"):
        side.open().pulls.merge(number, author=BOT)


# Merge trains


def test_a_project_with_merge_trains_merges_by_one(side: RemoteSide) -> None:
    """A plain merge would go past the train."""
    number, head = ready(side)
    side.state.has_queue = True
    made = side.open().pulls.merge(number, head=head, author=BOT)
    assert (made.state, made.hold, made.held) == (
        PullState.OPEN,
        Hold.QUEUED,
        "it is in the merge train",
    )
    assert held(side)[0] is Hold.QUEUED
    sent = len(side.site.asked)
    again = side.open().pulls.merge(number, head=head, author=BOT)
    assert again.hold is Hold.QUEUED
    assert not [line for line in side.site.lines(sent) if not line.startswith("GET")]
    [tried] = [asked for asked in side.site.asked if "/merge_trains/" in asked.path]
    assert tried.data == {"sha": head}
    leave_train(dialect_of(side), number, "its pipeline failed")
    assert held(side) == (Hold.NONE, "")
    said = "it was removed from the merge train: its pipeline failed"
    assert side.open().pulls.read(number).held == said


def test_a_place_in_a_train_whose_answer_is_lost_is_one(side: RemoteSide) -> None:
    number, head = ready(side)
    side.state.has_queue = True
    side.site.faults = [Fault(part="/merge_trains/", drop=True, after=True)]
    assert side.open().pulls.merge(number, head=head, author=BOT).hold is Hold.QUEUED


def test_a_merge_train_takes_only_the_reviewed_commit(side: RemoteSide) -> None:
    number, head = ready(side)
    side.state.has_queue = True
    push_in_the_midst(side, "/merge_trains/")
    with pytest.raises(HeadMovedError):
        side.open().pulls.merge(number, head=head, author=BOT)


def test_what_a_merge_train_does_not_take_is_told(side: RemoteSide) -> None:
    number, _ = ready(side)
    side.state.has_queue = True
    dialect_of(side).standing = "discussions_not_resolved"
    with pytest.raises(MergeRefusedError, match="Failed to merge: a thread is not resolved"):
        side.open().pulls.merge(number, author=BOT)


def test_what_a_person_has_set_to_auto_merge_is_left_to_gitlab(side: RemoteSide) -> None:
    number, _ = ready(side)
    [(_, pull)] = side.state.pulls()
    pull.place = 1
    made = side.open().pulls.merge(number, author=BOT)
    assert (made.state, made.hold) == (PullState.OPEN, Hold.QUEUED)


def test_an_account_that_may_not_merge_is_not_taken_for_a_wrong_token(side: RemoteSide) -> None:
    number, _ = ready(side)
    dialect_of(side).may_merge = False
    with pytest.raises(MergeRefusedError, match="may not merge into 'main'"):
        side.open().pulls.merge(number, author=BOT)


@pytest.mark.parametrize("status", [401, 405, 406, 409, 422])
def test_what_others_have_merged_meanwhile_is_merged(side: RemoteSide, status: int) -> None:
    number, _ = ready(side)
    refusal = Reply(status, {"message": "no"})
    side.site.faults = [Fault(part="/merge", reply=refusal, after=True)]
    side.site.faults[0].part = f"/merge_requests/{number}/merge"
    merged = side.open().pulls.merge(number, author=BOT)
    assert merged.state is PullState.MERGED
    assert merged.merged_as == side.open().branch_head("main")


def test_a_push_in_the_midst_of_a_merge_is_told(side: RemoteSide) -> None:
    number, head = ready(side)
    push_in_the_midst(side, "/merge_requests/1/merge")
    with pytest.raises(HeadMovedError):
        side.open().pulls.merge(number, head=head, author=BOT)


def test_a_merge_whose_answer_is_lost_is_a_merge(side: RemoteSide) -> None:
    number, head = ready(side)
    side.site.faults = [Fault(part="/merge_requests/1/merge", drop=True, after=True)]
    assert side.open().pulls.merge(number, head=head, author=BOT).state is PullState.MERGED


def test_only_a_wish_for_one_commit_is_sent(side: RemoteSide) -> None:
    """How a project merges is its own setting."""
    for method, branch in (("merge", "fix/1"), ("squash", "fix/2")):
        number, head = opened(side, branch)
        side.finish(head, CheckState.SUCCESS)
        settings = structs.replace(side.project.forge, merge_method=method)
        project = structs.replace(
            side.project,
            forge=settings,
            review=structs.replace(side.project.review, required=False),
        )
        open_forge(project, None, side.folder).pulls.merge(number, author=BOT)
    sent = [asked.data for asked in side.site.asked if asked.path.endswith("/merge")]
    assert ["squash" in data for data in sent] == [False, True]
    assert all(data["sha"] for data in sent)
