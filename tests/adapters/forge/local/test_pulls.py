from __future__ import annotations

import pytest

from sm.adapters.forge.errors import NotFoundError, NothingToMergeError, PullClosedError
from sm.adapters.forge.model import InlineComment, PullState, ReviewState
from sm.base.errors import StateError, UsageError
from tests.helpers import git
from tests.hub import Hub


def test_branch_has_one_open_pull_request(hub: Hub) -> None:
    head = hub.push("fix/1")
    forge = hub.open()
    forge.issues.add("a", author="x")
    first = forge.pulls.open("fix/1", "main", "T", "Closes #1", author="sm")
    assert (first.number, first.head, first.state) == (2, head, PullState.OPEN)
    assert hub.open().pulls.open("fix/1", "main", "Other", author="sm") == first
    assert forge.pulls.find_newest("fix/1") == first
    assert forge.pulls.find_newest("fix/2") is None


def test_closed_one_makes_room_for_another(hub: Hub) -> None:
    hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    hub.edit("pulls/0001.md", "state: open", "state: closed")
    assert forge.pulls.read(1).state is PullState.CLOSED
    assert forge.pulls.open("fix/1", "main", "T", author="sm").number == 2
    newest = forge.pulls.find_newest("fix/1")
    assert newest is not None
    assert newest.number == 2


def test_branch_without_commits_of_its_own_is_refused(hub: Hub) -> None:
    git(hub.repository.clone, "push", "-q", "origin", "HEAD:refs/heads/fix/1")
    with pytest.raises(NothingToMergeError, match="no commits that 'main' lacks"):
        hub.open().pulls.open("fix/1", "main", "T", author="sm")
    with pytest.raises(NotFoundError, match="no branch 'fix/2'"):
        hub.open().pulls.open("fix/2", "main", "T", author="sm")
    assert not list((hub.folder / "pulls").iterdir())


def test_head_follows_the_branch(hub: Hub) -> None:
    hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    moved = hub.push("fix/1", content="more\n")
    assert forge.pulls.read(1).head == moved
    assert moved in (hub.folder / "pulls" / "0001.md").read_text()


def test_push_to_the_base_merges(hub: Hub) -> None:
    head = hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    hub.check_out("fix/1")
    git(hub.repository.clone, "push", "-q", "origin", "fix/1:main")
    git(hub.repository.clone, "push", "-q", "origin", ":fix/1")
    pull = forge.pulls.read(1)
    assert (pull.state, pull.head, pull.merged_as) == (PullState.MERGED, head, head)
    hub.push("fix/1", content="again\n")
    assert forge.pulls.open("fix/1", "main", "T", author="sm").number == 2


def test_merge_commit_that_was_pushed_is_found(hub: Hub) -> None:
    head = hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    clone = hub.repository.clone
    hub.check_out("fix/1")
    git(clone, "checkout", "-q", "main")
    git(clone, "merge", "-q", "--no-ff", "-m", "by hand", "fix/1")
    merge = hub.repository.commit("later", "x\n")
    pull = forge.pulls.read(1)
    assert (pull.state, pull.head) == (PullState.MERGED, head)
    assert pull.merged_as == git(clone, "rev-parse", f"{merge}^")


def test_branch_set_back_to_its_base_is_not_merged(hub: Hub) -> None:
    hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    git(hub.repository.clone, "push", "-q", "-f", "origin", "main:fix/1")
    pull = forge.pulls.read(1)
    assert (pull.state, pull.head) == (PullState.OPEN, hub.main())
    head = hub.push("other", name="other.txt")
    hub.check_out("other")
    git(hub.repository.clone, "push", "-q", "-f", "origin", "other:fix/1")
    assert forge.pulls.read(1).head == head


def test_conflict_with_the_base_is_seen_and_mended(hub: Hub) -> None:
    hub.push("fix/1", "README.md", "mine\n")
    forge = hub.open()
    assert not forge.pulls.open("fix/1", "main", "T", author="sm").conflicts
    git(hub.repository.clone, "checkout", "-q", "main")
    hub.repository.commit("README.md", "theirs\n")
    assert forge.pulls.read(1).conflicts
    assert hub.open().pulls.find()[0][0].conflicts
    hub.check_out("fix/1")
    git(hub.repository.clone, "rebase", "-q", "-X", "theirs", "main")
    git(hub.repository.clone, "push", "-q", "-f", "origin", "fix/1")
    assert not forge.pulls.read(1).conflicts


def test_histories_that_have_nothing_in_common_conflict(hub: Hub) -> None:
    clone = hub.repository.clone
    git(clone, "checkout", "-q", "--orphan", "fix/1")
    hub.repository.commit("a", "b\n")
    assert hub.open().pulls.open("fix/1", "main", "T", author="sm").conflicts


def test_conflicts_are_told_of_each_of_many(hub: Hub) -> None:
    forge, clone = hub.open(), hub.repository.clone
    for number, name in enumerate(("clean.txt", "README.md", "more.txt", "README.md"), start=1):
        hub.push(f"fix/{number}", name, f"of {number}\n")
        forge.pulls.open(f"fix/{number}", "main", "T", author="sm")
    git(clone, "checkout", "-q", "--orphan", "other")  # here git's attempt at all of them ends
    hub.repository.commit("README.md", "unrelated\n")
    git(clone, "push", "-q", "-f", "origin", "other:fix/3")
    git(clone, "checkout", "-q", "main")
    hub.repository.commit("README.md", "theirs\n")
    expected = [False, True, True, True]
    assert [pull.conflicts for pull in hub.open().pulls.find()[0]] == expected
    assert [pull.conflicts for pull in forge.pulls.find()[0]] == expected


def test_review_is_of_the_commit_that_was_there(hub: Hub) -> None:
    head = hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    remarks = [
        InlineComment("src/a.py", 3, "## Review by x: approved\n"),
        InlineComment("b", 1, ""),
    ]
    review = forge.pulls.review(
        1, ReviewState.CHANGES_REQUESTED, "mend\r\nit", remarks, author="Eve, PhD"
    )
    hub.push("fix/1", content="more\n")
    pull = hub.open().pulls.read(1)
    assert pull.reviews == (review,)
    assert (review.head, review.comments) == (head, tuple(remarks))
    assert pull.head != head
    assert forge.pulls.review(1, ReviewState.APPROVED, author="x", head=head[:9]).head == head


def test_review_typed_in_an_editor_is_of_the_commit_that_was_there(hub: Hub) -> None:
    head = hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    with (hub.folder / "pulls" / "0001.md").open("a") as file:
        file.write("\n## Review by eve: approve\n\nNice.\n")
    seen = forge.pulls.read(1).reviews[0]
    hub.push("fix/1", content="more\n")
    assert seen.head == head
    assert hub.open().pulls.read(1).reviews == (seen,)


def test_unusable_reviews_are_refused(hub: Hub) -> None:
    hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    with pytest.raises(UsageError, match="is no line of a file"):
        forge.pulls.review(1, ReviewState.APPROVED, "", [InlineComment("a", 0, "x")], author="x")
    with pytest.raises(NotFoundError, match="there is no commit 'feed'"):
        forge.pulls.review(1, ReviewState.APPROVED, author="x", head="feed")
    hub.edit("pulls/0001.md", "state: open", "state: closed")
    with pytest.raises(PullClosedError, match="only comment on it"):
        forge.pulls.review(1, ReviewState.APPROVED, author="x")
    forge.pulls.review(1, ReviewState.COMMENTED, "pity", author="x")


def test_half_edited_pull_request_is_named_and_never_opened_twice(hub: Hub) -> None:
    hub.push("fix/1")
    hub.push("fix/2")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    forge.pulls.open("fix/2", "main", "T", author="sm")
    hub.edit("pulls/0001.md", "state: open", "state: [open")
    found = forge.observe(start_checks=False)
    assert (found.issues, [pull.number for pull in found.pulls]) == ((), [2])
    assert "0001.md' line " in found.problems[0]
    with pytest.raises(StateError, match="cannot be read"):
        forge.pulls.open("fix/1", "main", "T", author="sm")
    assert forge.pulls.open("fix/2", "main", "T", author="sm").number == 2


def test_numbers_are_told_apart(hub: Hub) -> None:
    hub.push("fix/1")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    forge.issues.add("a", author="x")
    with pytest.raises(NotFoundError, match="1 is no issue: it is a pull request"):
        forge.issues.read(1)
    with pytest.raises(NotFoundError, match="2 is no pull request: it is an issue"):
        forge.pulls.read(2)
    assert forge.issues.comment(1, "on a pull request", author="x")
    assert forge.pulls.read(1).comments[0].body == "on a pull request"


def test_diff_is_of_the_branch_alone_also_after_the_merge(hub: Hub) -> None:
    hub.push("fix/1", "mine.txt", "mine\n")
    forge = hub.open()
    forge.pulls.open("fix/1", "main", "T", author="sm")
    git(hub.repository.clone, "checkout", "-q", "main")
    hub.repository.commit("theirs.txt", "theirs\n")
    before = forge.pulls.diff(1)
    assert b"+mine" in before
    assert b"theirs" not in before
    forge.pulls.merge(1, author="x")
    assert forge.pulls.diff(1) == before
