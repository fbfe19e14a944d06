from __future__ import annotations

import json
from pathlib import Path

import pytest

from sm.forge import InlineComment, PullState, ReviewState
from tests.hub import Hub, make_hub


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """A project that wants reviews, with one pull request, number 1."""
    hub = make_hub(tmp_path, review=True)
    hub.push("fix/1", "new.txt", "mine\n")
    hub.open().open_pull("fix/1", "main", "Mend it", "Closes #1", author="sm")
    return hub


def ok(hub: Hub, *args: str) -> str:
    done = hub.sm(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(hub: Hub, *args: str) -> str:
    done = hub.sm(*args)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_list_and_show_tell_what_there_is_to_merge(hub: Hub) -> None:
    head = hub.open().pull(1).head
    listed = ok(hub, "pr", "list").splitlines()[2].split()
    assert listed == ["1", "Mend", "it", "open", "fix/1", "main", head[:12], "none"]
    assert json.loads(ok(hub, "pr", "list", "--json"))[0]["head"] == head
    assert ok(hub, "pr", "list", "--state", "merged").splitlines()[2:] == []
    shown = ok(hub, "pr", "show", "1")
    assert shown.startswith("#1 Mend it\nopen · sm, ")
    assert f"\nfix/1 at {head[:12]} into main\nCI: none\n\nCloses #1\n" in shown


def test_diff_shows_the_change(hub: Hub) -> None:
    assert "\n+mine\n" in ok(hub, "pr", "diff", "1")
    assert "new.txt | 1 +" in ok(hub, "pr", "diff", "1", "--stat")


def test_review_with_remarks_then_approval_then_merge(hub: Hub) -> None:
    head = hub.open().pull(1).head
    said = ok(
        *(hub, "review", "1", "--request-changes", "-m", "Not yet", "--as", "Eve"),
        *("--comment", "new.txt:1:say: why", "--comment", "a b/c.py:12:two\nlines"),
    )
    assert said == f"changes-requested #1 at {head[:12]}\n"
    review = hub.open().pull(1).reviews[0]
    assert (review.author, review.state, review.body) == (
        "Eve",
        ReviewState.CHANGES_REQUESTED,
        "Not yet",
    )
    assert review.comments == (
        InlineComment("new.txt", 1, "say: why"),
        InlineComment("a b/c.py", 12, "two\nlines"),
    )
    assert "new.txt:1\n\nsay: why\n" in ok(hub, "pr", "show", "1")
    assert "'Eve' wants changes" in refused(hub, "pr", "merge", "1")
    ok(hub, "review", "1", "--approve", "--as", "Eve", "--head", head[:10])
    merged = ok(hub, "pr", "merge", "1", "--head", head, "-m", "My words")
    pull = hub.open().pull(1)
    assert (pull.state, pull.merged_as) == (PullState.MERGED, hub.main())
    assert merged == f"merged #1 as {hub.main()[:12]}\n"
    assert ok(hub, "pr", "merge", "1") == merged


def test_merge_that_is_refused_says_why(hub: Hub) -> None:
    before = hub.main()
    assert "run 'sm review 1 --approve'" in refused(hub, "pr", "merge", "1")
    head = hub.open().pull(1).head
    hub.push("fix/1", content="more\n")
    assert f"not at {head[:12]} any more" in refused(hub, "pr", "merge", "1", "--head", head)
    assert "there is no commit 'feed'" in refused(hub, "pr", "merge", "1", "--head", "feed")
    assert "there is no pull request 9" in refused(hub, "pr", "merge", "9")
    assert hub.main() == before


def test_review_that_says_nothing_or_nonsense_is_refused(hub: Hub) -> None:
    assert "the review says nothing" in refused(hub, "review", "1")
    assert "the review says nothing" in refused(hub, "review", "1", "--request-changes")
    for remark in ("new.txt", "new.txt:x:text", "new.txt:0:text", ":1:text", "new.txt:1: "):
        assert "write FILE:LINE:TEXT" in refused(hub, "review", "1", "--comment", remark)
    assert hub.open().pull(1).reviews == ()


def test_comment_alone_decides_nothing(hub: Hub) -> None:
    assert ok(hub, "review", "1", "-m", "Hm").startswith("commented #1 at ")
    assert "is not approved" in refused(hub, "pr", "merge", "1")
