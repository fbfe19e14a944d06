from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sm.adapters.forge.model import InlineComment, PullState, ReviewState
from tests.helpers import git
from tests.hub import Hub, make_hub


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """A project that wants reviews, with one pull request, number 1."""
    hub = make_hub(tmp_path, review=True)
    hub.push("fix/1", "new.txt", "mine\n")
    hub.open().pulls.open("fix/1", "main", "Mend it", "Closes #1", author="sm")
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
    head = hub.open().pulls.read(1).head
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


def test_a_patch_in_a_pipe_can_be_applied_whatever_bytes_and_settings_there_are(hub: Hub) -> None:
    clone, latin_1 = hub.repository.clone, "café\n".encode("latin-1")
    hub.check_out("fix/1")
    (clone / "menu.txt").write_bytes(latin_1)
    git(clone, "add", "menu.txt")
    git(clone, "commit", "-q", "-m", "in Latin-1")
    git(clone, "push", "-q", "origin", "HEAD")
    git(clone, "checkout", "-q", "main")
    for name, value in (("noprefix", "true"), ("external", "false"), ("context", "0")):
        git(clone, "config", "--global", f"diff.{name}", value)
    words = (sys.executable, "-Im", "sm", "--config", hub.config, "pr", "diff", "1")
    patch = subprocess.run(words, capture_output=True, check=True).stdout
    subprocess.run(["git", "-C", clone, "apply"], input=patch, check=True)
    assert (clone / "menu.txt").read_bytes() == latin_1


def test_review_with_remarks_then_approval_then_merge(hub: Hub) -> None:
    head = hub.open().pulls.read(1).head
    said = ok(
        *(hub, "review", "1", "--request-changes", "-m", "Not yet", "--as", "Eve"),
        *("--comment", "new.txt:1:say: why", "--comment", "new.txt:12:two\nlines"),
    )
    assert said == f"changes-requested #1 at {head[:12]}\n"
    review = hub.open().pulls.read(1).reviews[0]
    assert (review.author, review.state, review.body) == (
        "Eve",
        ReviewState.CHANGES_REQUESTED,
        "Not yet",
    )
    assert review.comments == (
        InlineComment("new.txt", 1, "say: why"),
        InlineComment("new.txt", 12, "two\nlines"),
    )
    assert "new.txt:1\n\nsay: why\n" in ok(hub, "pr", "show", "1")
    assert "'Eve' wants changes" in refused(hub, "pr", "merge", "1")
    ok(hub, "review", "1", "--approve", "--as", "Eve", "--head", head[:10])
    merged = ok(hub, "pr", "merge", "1", "--head", head, "-m", "My words")
    pull = hub.open().pulls.read(1)
    assert (pull.state, pull.merged_as) == (PullState.MERGED, hub.main())
    assert merged == f"merged #1 at {head[:12]} as {hub.main()[:12]}\n"
    assert ok(hub, "pr", "merge", "1") == merged


def test_merge_that_is_refused_says_why(hub: Hub) -> None:
    before = hub.main()
    assert "by 'sm review 1 --approve'" in refused(hub, "pr", "merge", "1")
    head = hub.open().pulls.read(1).head
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
    assert hub.open().pulls.read(1).reviews == ()


def test_comment_alone_decides_nothing(hub: Hub) -> None:
    assert ok(hub, "review", "1", "-m", "Hm").startswith("commented #1 at ")
    assert "is not approved" in refused(hub, "pr", "merge", "1")


def test_the_list_says_what_the_reviewers_agree_on(hub: Hub) -> None:
    assert "Review" in ok(hub, "pr", "list").splitlines()[0].split()
    ok(hub, "review", "1", "--request-changes", "-m", "Not yet", "--as", "Eve")
    assert " changes" in ok(hub, "pr", "list").splitlines()[2]
    ok(hub, "review", "1", "--approve", "--as", "Eve")
    assert " approved" in ok(hub, "pr", "list").splitlines()[2]


def test_verbs_that_people_know_from_gh(hub: Hub) -> None:
    assert ok(hub, "pr", "view", "1") == ok(hub, "pr", "show", "1")
    assert ok(hub, "pr", "checks", "1") == "CI: none\n"
    ok(hub, "pr", "comment", "1", "-b", "Nice.")
    assert hub.open().pulls.read(1).comments[0].body == "Nice."
    assert ok(hub, "pr", "close", "harb#1") == "closed #1\n"
    assert hub.open().pulls.read(1).state is PullState.CLOSED
    assert ok(hub, "pr", "close", "1") == "closed #1\n"


def test_a_merged_pull_request_is_not_closed(hub: Hub) -> None:
    ok(hub, "review", "1", "--approve", "--as", "Eve")
    ok(hub, "pr", "merge", "1")
    assert "pull request 1 is merged: nothing to close" in refused(hub, "pr", "close", "1")


def test_a_remark_on_a_file_that_is_not_in_the_change_is_refused(hub: Hub) -> None:
    hub.push("fix/1", "src/cart.py", "mine\n")
    for remark, meant in (
        ("src/card.py:1:why", "did you mean 'src/cart.py'?"),
        ("cart.py:1:why", "did you mean 'src/cart.py'?"),
        ("README.md:1:why", "it changes 'new.txt', 'src/cart.py'"),
    ):
        path = remark.partition(":")[0]
        said = refused(hub, "review", "1", "-m", "x", "--comment", remark)
        assert f"does not change '{path}': {meant}" in said
    assert hub.open().pulls.read(1).reviews == ()


def test_a_remark_on_a_file_that_is_removed_is_taken(hub: Hub) -> None:
    clone = hub.repository.clone
    hub.check_out("fix/1")
    git(clone, "rm", "-q", "README.md")
    git(clone, "commit", "-q", "-m", "remove it")
    git(clone, "push", "-q", "origin", "HEAD")
    ok(hub, "review", "1", "--comment", "README.md:1:needed")
    assert hub.open().pulls.read(1).reviews[0].comments[0].path == "README.md"


def test_a_pull_request_is_checked_out_beside_the_agent_that_has_its_branch(hub: Hub) -> None:
    clone, head = hub.repository.clone, hub.open().pulls.read(1).head
    git(clone, "fetch", "-q", "origin", "fix/1:fix/1")
    git(clone, "worktree", "add", "-q", str(hub.project.worktree(1)), "fix/1")
    git(clone, "update-ref", "-d", "refs/remotes/origin/fix/1")
    said = hub.sm("pr", "checkout", "1", cwd=clone)
    assert (said.returncode, said.stdout) == (
        0,
        f"at {head[:12]}, the last commit of #1; git switch - goes back\n",
    )
    assert git(clone, "rev-parse", "HEAD") == head
    assert (clone / "new.txt").read_text() == "mine\n"
    assert git(clone, "branch", "--show-current") == ""
    git(clone, "switch", "-q", "-")
    assert git(clone, "branch", "--show-current") == "main"


def test_a_checkout_overwrites_nothing_and_knows_its_clone(hub: Hub, tmp_path: Path) -> None:
    clone = hub.repository.clone
    git(clone, "checkout", "-q", "main")
    (clone / "new.txt").write_text("a person's\n")
    said = hub.sm("pr", "checkout", "1", cwd=clone)
    assert said.returncode == 1
    assert "new.txt" in said.stderr
    assert (clone / "new.txt").read_text() == "a person's\n"
    elsewhere = hub.sm("pr", "checkout", "1", cwd=tmp_path)
    assert elsewhere.returncode == 2
    assert f"go to your clone '{clone}'" in elsewhere.stderr


def test_a_merged_pull_request_is_checked_out_too(hub: Hub) -> None:
    clone, head = hub.repository.clone, hub.open().pulls.read(1).head
    git(clone, "checkout", "-q", "main")
    ok(hub, "review", "1", "--approve", "--as", "Eve")
    ok(hub, "pr", "merge", "1")
    git(hub.repository.bare, "update-ref", "-d", "refs/heads/fix/1")
    assert hub.sm("pr", "checkout", "1", cwd=clone).returncode == 0
    assert git(clone, "rev-parse", "HEAD") == head
