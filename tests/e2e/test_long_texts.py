"""Texts of any length: the snapshot keeps none, commands refuse them before anything is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.model import (
    Check,
    CheckState,
    Comment,
    InlineComment,
    IssueState,
    Review,
    ReviewState,
)
from sm.base.errors import StateError
from sm.channels.channel import PersonReply
from sm.issues.look import brief
from sm.issues.look.answers import read_texts
from sm.issues.look.snapshot import snapshot
from sm.sessions import plan
from sm.store.files import append_line, read_json, write_json
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage
from tests.helpers import HANG_S, a_pull, an_issue, put_session, wait_for

MANY = "x" * 1_000_000


def test_seventeen_megabytes_of_comments_stop_nothing_and_an_answer_among_them_is_heard(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    stage.file_issue()
    forge = stage.project.forge
    for _ in range(17):
        other = forge.issues.add("Talked about a lot", author="eve")
        forge.issues.comment(other.number, MANY, author="eve")
    stage.poll()
    wait_for(lambda: stage.told(), "the first prompt")
    stage.write_phase(1, "PHASE:escalate\nleft or right?")
    wait_for(lambda: forge.issues.read(1).comments, "the question")
    forge.issues.comment(1, "Take the left one.", author="ada")
    wait_for(lambda: any("Take the left one." in each for each in stage.told()), "the answer")
    stage.poll()
    assert stage.project.directory.snapshot.stat().st_size < 20_000


def test_a_review_is_told_whole_though_the_snapshot_has_only_its_verdict(
    stage_of: MakeStage,
) -> None:
    stage = stage_of()
    stage.file_issue()
    stage.poll()
    wait_for(lambda: stage.told(), "the first prompt")
    stage.push_work(1)
    stage.write_phase(1, "PHASE:awaiting_review")
    forge = stage.project.forge
    pull = wait_for(
        lambda: forge.pulls.find_newest(stage.project.settings.branch(1)), "a pull request"
    )
    assert pull
    forge.pulls.review(
        pull.number,
        ReviewState.CHANGES_REQUESTED,
        "Say why.",
        [InlineComment("work.txt", 1, "Not here.")],
        author="rita",
    )
    told = wait_for(lambda: [one for one in stage.told() if "changes requested" in one], "it")
    assert "Say why." in told[0]
    assert "work.txt:1: Not here." in told[0]
    [review] = snapshot(stage.project).pulls[0].reviews
    assert (review.author, review.body, review.comments) == ("rita", "", ())


def test_what_is_kept_of_an_issue_is_short_however_long_it_is() -> None:
    said = tuple(Comment(MANY, float(at), MANY, "m" * 1000) for at in range(1000))
    labels = ("backlog", *(f"label-{number}" for number in range(1000)))
    issue = an_issue(7, *labels, title=MANY, comments=said, body=f"Depends on #3 #3\n{MANY}")
    kept = brief.brief_issue(issue, {"backlog", "blocked"})
    assert kept.labels == ("backlog",)
    assert kept.dependencies() == (3,)
    assert [each.at for each in kept.comments] == [float(at) for at in range(500, 1000)]
    assert kept.title.endswith("x…")
    assert all(len(text) <= 300 for each in kept.comments for text in (each.author, each.marker))
    closed = brief.brief_issue(structs.replace(issue, state=IssueState.CLOSED), set())
    assert (closed.body, closed.comments) == ("", ())


def test_an_issue_that_depends_on_too_many_is_named_and_passed_over() -> None:
    numbers = " ".join(f"#{number}" for number in range(1, 1002))
    issue = an_issue(7, body=f"Depends on {numbers}")
    with pytest.raises(StateError, match=r"#7 depends on 1,001 issues, 1,000 are allowed"):
        brief.brief_issue(issue, set())


def test_of_each_reviewer_the_verdict_is_kept_and_of_a_check_no_log() -> None:
    def review(at: float, author: str, state: ReviewState) -> Review:
        inline = (InlineComment("a", 1, MANY),)
        return Review(f"r{at:g}", author, at, state, "c0ffee", MANY, inline)

    reviews = (
        review(1, "rita", ReviewState.CHANGES_REQUESTED),
        review(2, "rita", ReviewState.APPROVED),
        review(3, "rita", ReviewState.COMMENTED),
        review(4, "ruth", ReviewState.CHANGES_REQUESTED),
    )
    check = Check(CheckState.FAILURE, "c0ffee", MANY, MANY, MANY)
    kept = brief.brief_pull(
        structs.replace(a_pull(9, "fix/7", reviews=reviews, body=MANY), check=check)
    )
    assert [(each.id, each.body, each.comments) for each in kept.reviews] == [
        ("r2", "", ()),
        ("r4", "", ()),
    ]
    assert (kept.body, kept.check.log, len(kept.check.step)) == ("", "", 300)


def test_two_answers_of_one_moment_are_both_told_and_a_deleted_one_is_left_out() -> None:
    said = (
        Comment("ada", 5.0, "One."),
        Comment("ada", 5.0, "Two."),
        Comment("sm", 5.0, "Ours.", "m"),
    )
    found = [PersonReply("comment-5-ada", 5.0, "ada", "") for _ in range(3)]
    typed = PersonReply("6.000-abc", 6.0, "ada", "Typed.")
    assert read_texts([*found, typed], said) == ["One.", "Two.", "", "Typed."]


def test_no_writer_writes_what_its_reader_refuses(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    write_json(path, "old")
    with pytest.raises(StateError, match=r"would have 16,777,219 bytes, 16,777,216 are allowed"):
        write_json(path, "x" * 16 * 1024 * 1024)
    assert read_json(path, str) == "old"
    assert [each.name for each in tmp_path.glob("*kept*")] == ["kept.json"]
    append_line(path, b"more", limit=100)
    with pytest.raises(StateError, match="100 are allowed"):
        append_line(path, b"x" * 100, limit=100)


def test_a_receipt_that_no_reader_would_find_is_not_written(stage_of: MakeStage) -> None:
    session = put_session(stage_of().project, 7)
    with session.dir.receipts.open("ab") as file:
        file.truncate(16 * 1024 * 1024)
    [first] = plan.read_receipts(session.dir)
    with pytest.raises(StateError, match="are allowed"):
        plan.add_receipt(session.dir, first)


def endless(stage: Stage, *argv: str) -> subprocess.CompletedProcess[str]:
    """A command whose standard input never ends."""
    with Path("/dev/zero").open("rb") as zeros:
        return subprocess.run(
            [sys.executable, "-Im", "sm", *argv],
            stdin=zeros,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
            env=os.environ | {"SM_CONFIG": str(stage.config)},
        )


ENDLESS = (
    ("reply", "harb", "1", "-"),
    ("send", "harb#1", "-"),
    ("new", "-"),
    ("issue", "add", "More", "--file", "-"),
    ("issue", "add", "More", "--file", "/dev/zero"),
    ("issue", "comment", "1", "--file", "-"),
    ("bridge", "create", "x", "-"),
)


def test_an_endless_text_is_refused_at_the_door_with_the_number(stage_of: MakeStage) -> None:
    stage = stage_of()
    stage.file_issue()
    put_session(stage.project, 1, alive=False)
    for argv in ENDLESS:
        done = endless(stage, *argv)
        assert done.returncode == 2, argv
        assert "is larger than 1,048,576 bytes" in done.stderr, argv
    assert not list(stage.project.root.session("dev-harb-1").replies.glob("*"))
    assert [issue.comments for issue in stage.project.forge.issues.find()[0]] == [()]
