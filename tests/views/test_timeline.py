"""What has happened is told by kind, newest first, with whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import json, structs

from sm.issues.rules.matrix import BY_NAME
from sm.store import events, journal
from sm.store.files import append_line
from sm.views.news import DECIDED
from sm.views.timeline import BY_ROW, MOST, Timeline, TimelineKind, read_timeline


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def record(path: Path, at: float, event: events.Event, session: str = "dev-shop-7") -> None:
    told = structs.replace(event, at=at, session=session)
    append_line(path, json.encode(told) + b"\n")


def read(path: Path, since: float = 0.0) -> Timeline:
    return read_timeline(path, ("shop", "a.b"), since)


def test_every_decision_that_is_told_has_a_kind() -> None:
    assert set(BY_ROW) <= set(BY_NAME)
    assert set(DECIDED) <= set(BY_ROW)


def test_a_night_is_told_newest_first(path: Path) -> None:
    record(path, 10.0, events.Started(title="Mend it"))
    for at, event in (
        (20.0, events.StepDone(verb="open the pull request", row="open-pull", result="#9")),
        (30.0, events.Decided(row="ci-failed")),
        (40.0, events.StepDone(verb="escalate", row="escalate", text="Which colour?")),
        (50.0, events.Reply(author="ada", text="Blue")),
        (60.0, events.Decided(row="recover")),
        (70.0, events.Decided(row="merge-seen")),
    ):
        record(path, at, event)
    record(path, 80.0, events.StepDone(verb="comment", row="failed", text="It failed"), "dev-a_b-1")
    record(path, 90.0, events.Kill(), "s-0123abcd")
    record(path, 95.0, events.Monitor(state="started"))
    timeline = read(path)
    assert [(one.name, one.kind, one.text) for one in timeline.entries] == [
        ("s-0123abcd", TimelineKind.ENDED, "a person has ended its session"),
        ("a.b#1", TimelineKind.FAILED, "It failed"),
        ("shop#7", TimelineKind.MERGED, "merged"),
        ("shop#7", TimelineKind.RESTARTED, "its agent is gone, another one is started"),
        ("shop#7", TimelineKind.ANSWERED, "answered by ada"),
        ("shop#7", TimelineKind.ASKED, "Which colour?"),
        ("shop#7", TimelineKind.JUDGED, "CI failed, its agent is told"),
        ("shop#7", TimelineKind.OFFERED, "pull request #9 opened"),
    ]
    assert {one.title for one in timeline.entries if one.project == "shop"} == {"Mend it"}
    assert timeline.count()[TimelineKind.MERGED] == 1
    assert [one.at for one in read(path, since=70.0).entries] == [90.0, 80.0, 70.0]


def test_an_event_of_a_clock_that_was_set_back_ends_no_night(path: Path) -> None:
    for at in (5000.0, 10.0, 6000.0):
        record(path, at, events.Decided(row="ci-passed"))
    assert [one.at for one in read(path, since=4000.0).entries] == [6000.0, 5000.0]


def test_what_the_journal_has_forgotten_is_not_called_all(path: Path) -> None:
    record(path, 5000.0, events.Decided(row="ci-passed"))
    assert read(path).is_whole
    journal.name_previous(path).write_bytes(b"")
    assert not read(path).is_whole
    record(path, 90_000.0 + 5000.0, events.Decided(row="ci-passed"))
    assert read(path, since=92_000.0).is_whole, "what is older was met"


def test_of_very_much_the_newest_is_told(path: Path) -> None:
    for at in range(MOST + 1):
        record(path, at + 1.0, events.Decided(row="ci-passed"))
    timeline = read(path)
    assert (len(timeline.entries), timeline.entries[0].at, timeline.is_whole) == (
        MOST,
        MOST + 1.0,
        False,
    )
