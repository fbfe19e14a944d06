from __future__ import annotations

from pathlib import Path

import pytest

from sm.issues.rules.matrix import BY_NAME
from sm.store import events, journal
from sm.store.paths import Root
from sm.views.news import DECIDED, read_news
from tests.helpers import old_line


def test_every_decision_that_is_told_is_one_of_the_matrix() -> None:
    assert set(DECIDED) <= set(BY_NAME)


def test_news_are_of_these_projects_alone_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for session in ("dev-a-1", "dev-a-b-2", "dev-a_b-3", "dev-other-4", "s-0123abcd", ""):
        passed = events.Decided(session=session, row="ci-passed", phase="PHASE:awaiting_ci")
        journal.record(path, passed)
    journal.record(path, events.Decided(session="dev-a-1", row="no-such-row"))
    journal.record(path, events.StepDone(session="dev-a-1", verb="inject", result="ci-passed"))
    lines, end = read_news(path, 0, ("a", "a.b"))
    assert [line.split(" ", 1)[1] for line in lines] == ["a: #1 CI passed", "a.b: #3 CI passed"]
    assert read_news(path, end, ("a",)) == ([], end)


def test_merged_work_is_told_with_how_it_arrives(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal.record(path, events.Decided(session="dev-a-1", row="merged"))
    (line,), _ = read_news(path, 0, ("a hub main",))
    assert line.endswith(" a: #1 merged; in your clone: git pull hub main")


def test_a_question_says_why_a_person_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal.record(path, events.StepDone(session="dev-a-1", verb="escalate", result="ci-broken"))
    lines, _ = read_news(path, 0, ("a",))
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
    lines, _ = read_news(root.journal, 0, ("a",))
    assert lines[0].endswith("a person is needed: The agent asks for a person (which colour?)")
    assert lines[1].endswith("a person is needed: CI has given no result in time")


@pytest.mark.parametrize(
    ("event", "detail", "told"),
    [
        ("decided", "ci-failed (PHASE:awaiting_ci)", "CI failed, its agent is told"),
        ("decided", "merged (PHASE:done)", "merged"),
        ("reply", "ada: take: the second", "answered by ada"),
        ("kill", "asked for by a person", "a person has ended its session"),
        ("recover", "asked for by a person", "a person has its agent restarted"),
        ("open the pull request", "#12", "pull request #12 opened"),
        ("escalate", "ci-broken", "a person is needed: CI itself failed"),
        ("remind", "reminder", "a person is reminded"),
        ("park", "until 17:40: usage limit", "its agent has to wait until 17:40: usage limit"),
    ],
)
def test_lines_of_earlier_versions_are_told_as_they_were(
    tmp_path: Path, event: str, detail: str, told: str
) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(old_line(event, "dev-a-1", detail) + old_line("recover", "dev-a-1", ""))
    path.chmod(0o600)
    lines, _ = read_news(path, 0, ("a",))
    assert [line.split(" ", 1)[1] for line in lines] == [f"a: #1 {told}"]
