from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from sm.issues.rules.matrix import BY_NAME
from sm.store import events, journal
from sm.store.paths import Root
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
    journal.record(path, events.Decided(session="dev-a-1", row="merged"))
    (line,), _ = read_news(path, 0, (Followed("a", "hub", "main"),))
    assert line.endswith(" a: #1 merged; in your clone: git pull hub main")


def test_a_question_says_why_a_person_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal.record(path, events.StepDone(session="dev-a-1", verb="escalate", result="ci-broken"))
    lines, _ = read_news(path, 0, (Followed("a"),))
    assert lines[0].endswith("a: #1 a person is needed: CI itself failed")


def test_a_question_of_the_agent_is_told_with_its_words(tmp_path: Path) -> None:
    root = Root(tmp_path)
    root.private.mkdir(mode=0o700)
    phase = root.phase("a", 1)
    phase.write_text("PHASE:escalate\nReason: which colour?\n")
    phase.chmod(0o600)
    for result in ("escalate", "ci-late"):
        asked = events.StepDone(session="dev-a-1", verb="escalate", result=result)
        journal.record(root.journal, asked)
    lines, _ = read_news(root.journal, 0, (Followed("a"),))
    assert lines[0].endswith("a person is needed: The agent asks for a person (which colour?)")
    assert lines[1].endswith("a person is needed: CI has given no result in time")


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            events.Decided(row="ci-failed", phase="PHASE:awaiting_ci"),
            "CI failed, its agent is told",
        ),
        (events.Decided(row="merged", phase="PHASE:done"), "merged"),
        (events.Reply(author="ada", text="take: the second"), "answered by ada"),
        (events.Kill(), "a person has ended its session"),
        (events.RecoverAsked(), "a person has its agent restarted"),
        (events.StepDone(verb="open the pull request", result="#12"), "pull request #12 opened"),
        (
            events.StepDone(verb="escalate", result="ci-broken"),
            "a person is needed: CI itself failed",
        ),
        (events.StepDone(verb="remind", result="reminder"), "a person is reminded"),
        (
            events.StepDone(verb="park", result="until 17:40: usage limit"),
            "its agent has to wait until 17:40: usage limit",
        ),
    ],
)
def test_what_happens_is_told_in_a_line(tmp_path: Path, event: events.Event, told: str) -> None:
    path = tmp_path / "journal.jsonl"
    for one in (event, events.StepDone(verb="recover")):
        journal.record(path, structs.replace(one, session="dev-a-1"))
    lines, _ = read_news(path, 0, (Followed("a"),))
    assert [line.split(" ", 1)[1] for line in lines] == [f"a: #1 {told}"]
