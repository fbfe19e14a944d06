from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from sm.issues.rules.matrix import BY_NAME
from sm.issues.rules.needs import KINDS
from sm.store import events, journal
from sm.views.news import DECIDED, Followed, read_news


def test_every_decision_that_is_told_is_one_of_the_matrix() -> None:
    assert set(DECIDED) <= set(BY_NAME)


def test_news_are_of_these_projects_alone_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for session in ("dev-a-1", "dev-a-b-2", "dev-a_b-3", "dev-other-4", "s-0123abcd", ""):
        passed = events.Decided(session=session, row="ci-passed", phase="PHASE:awaiting_ci")
        journal.record(path, passed)
    journal.record(path, events.Decided(session="dev-a-1", row="no-such-row"))
    journal.record(path, events.StepDone(session="dev-a-1", verb="inject", result="ci-passed"))
    lines, end = read_news(path, 0, (Followed("a"), Followed("a.b")))
    assert [line.split(" ", 1)[1] for line in lines] == ["a: #1 CI passed", "a.b: #3 CI passed"]
    assert read_news(path, end, (Followed("a"),)) == ([], end)


def test_merged_work_is_told_with_how_it_arrives(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal.record(path, events.Decided(session="dev-a-1", row="merge-seen"))
    (line,), _ = read_news(path, 0, (Followed("a", "hub", "main"),))
    assert line.endswith(" a: #1 merged; in your clone: git pull hub main")


def read_told(path: Path, event: events.Event) -> list[str]:
    """What is told of it, without the time."""
    journal.record(path, structs.replace(event, session="dev-a-1"))
    lines, _ = read_news(path, 0, (Followed("a"),))
    return [line[9:] for line in lines]


@pytest.mark.parametrize(
    "step",
    [
        events.StepDone(verb="escalate", row="escalate", result="escalate"),
        events.StepDone(verb="tell people", row="review-waits", result="review-waits"),
        events.StepDone(verb="comment", row="failed", result="failed"),
    ],
)
def test_what_needs_a_person_is_told_with_the_command_that_answers_it(
    tmp_path: Path, step: events.StepDone
) -> None:
    asked = structs.replace(step, need="question", text="Why (which one?)", command="sm do a 1")
    told = read_told(tmp_path / "journal.jsonl", asked)
    assert told == ["a: #1 needs you: Why (which one?)", "sm do a 1"]


def test_what_an_earlier_version_has_asked_is_told_too(tmp_path: Path) -> None:
    asked = events.StepDone(verb="escalate", result="ci-broken")
    told = read_told(tmp_path / "journal.jsonl", asked)
    assert told == ["a: #1 needs you: CI itself failed"]


@pytest.mark.parametrize("verb", ["comment", "remind"])
def test_what_was_told_already_needs_nobody_anew(tmp_path: Path, verb: str) -> None:
    again = events.StepDone(verb=verb, row="remind", need="question", text="Why", command="sm do")
    assert "needs you" not in "".join(read_told(tmp_path / "journal.jsonl", again))


def test_an_end_that_blocks_an_issue_is_told_once() -> None:
    assert not set(DECIDED) & set(KINDS)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            events.Decided(row="ci-failed", phase="PHASE:awaiting_ci"),
            "CI failed, its agent is told",
        ),
        (events.Decided(row="merge-seen", phase="PHASE:done"), "merged"),
        (events.Reply(author="ada", text="take: the second"), "answered by ada"),
        (events.Kill(), "a person has ended its session"),
        (events.RecoverAsked(), "a person has its agent restarted"),
        (events.StepDone(verb="open the pull request", result="#12"), "pull request #12 opened"),
        (events.StepDone(verb="remind", result="reminder"), "a person is reminded"),
        (
            events.StepDone(verb="park", result="until 17:40: usage limit"),
            "its agent has to wait until 17:40: usage limit",
        ),
    ],
)
def test_what_happens_is_told_in_a_line(tmp_path: Path, event: events.Event, told: str) -> None:
    path = tmp_path / "journal.jsonl"
    journal.record(path, events.StepDone(session="dev-a-1", verb="recover"))
    assert read_told(path, event) == [f"a: #1 {told}"]
