from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.errors import StateError
from sm.store import journal
from sm.store.journal import LINE_LIMIT, ROTATE_AT, Event


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal is."""
    return tmp_path / "journal.jsonl"


def test_events_are_read_in_order_and_by_session(path: Path) -> None:
    journal.record(path, "started", "dev-a-1", "with a detail")
    journal.record(path, "tick")
    journal.record(path, "decided", "dev-a-1")
    assert [e.event for e in journal.read(path)] == ["started", "tick", "decided"]
    mine = list(journal.read(path, "dev-a-1"))
    assert [(e.event, e.detail) for e in mine] == [("started", "with a detail"), ("decided", "")]


def test_no_journal_has_no_events(path: Path) -> None:
    assert list(journal.read(path)) == []


@pytest.mark.parametrize("letter", ["x", "ü", "\n", "\x01", '"', "✓", "𝕏"])
def test_a_long_line_is_cut_below_4_kb(path: Path, letter: str) -> None:
    journal.record(path, "said", "dev-a-1", letter * 10_000)
    line = path.read_bytes()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line) <= LINE_LIMIT + 1
    (event,) = journal.read(path)
    assert event.detail.endswith("…")
    assert event.detail.strip("…").strip(letter) == ""


@given(st.text(max_size=6000))
def test_every_detail_makes_one_short_line(detail: str) -> None:
    path = Path(os.environ["TMPDIR"]) / "journal.jsonl"
    path.unlink(missing_ok=True)
    detail = detail.encode("utf-8", "replace").decode()
    journal.record(path, "said", "dev-a-1", detail)
    assert len(path.read_bytes()) <= LINE_LIMIT + 1
    (event,) = journal.read(path)
    assert event.detail == detail or event.detail.endswith("…")


def test_a_full_journal_is_kept_once_and_still_read(path: Path) -> None:
    journal.record(path, "oldest")
    path.rename(f"{path}.1")
    journal.record(path, "old")
    with path.open("ab") as full:
        full.truncate(ROTATE_AT + 1)
    journal.record(path, "new")
    assert path.stat().st_size < 200
    # What a crash left behind, here zeros, is passed over.
    assert [e.event for e in journal.read(path)] == ["old", "new"]


def test_lines_that_are_no_events_are_passed_over(path: Path) -> None:
    journal.record(path, "first")
    with path.open("ab") as damaged:
        damaged.write(b'{"at": 1, "eve')
    journal.record(path, "last")
    assert [e.event for e in journal.read(path)] == ["first", "last"]


def test_an_event_is_plain_json_for_other_tools(path: Path) -> None:
    journal.record(path, "said", "dev-a-1", 'a "quote"\nand a line')
    event = msgspec.json.decode(path.read_bytes(), type=Event)
    assert event.detail == 'a "quote"\nand a line'
    assert event.at > 0


def test_a_damaged_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal.record(path, "begun", "ann")
    with path.open("ab") as file:
        file.write(b'{"at":1.0,"event":"\xff","session":"ann","detail":""}\n{"at":\n')
    journal.record(path, "ended", "ann")
    assert [entry.event for entry in journal.read(path)] == ["begun", "ended"]
    assert journal.latest(path, {"ann"})["ann"].event == "ended"


@pytest.mark.parametrize("which", ["journal.jsonl", "journal.jsonl.1"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_plain_file_is_refused_and_waited_for_by_nobody(
    path: Path, which: str, make: Callable[[Path], None]
) -> None:
    make(path.with_name(which))
    for reading in (journal.read, journal.newest_first, journal.backwards):
        with pytest.raises(StateError, match=which):
            list(reading(path))


def test_a_journal_that_cannot_be_put_aside_goes_on(path: Path) -> None:
    journal.record(path, "tick")
    os.truncate(path, ROTATE_AT + 1)
    path.with_name("journal.jsonl.1").mkdir()
    for _ in range(2):
        journal.record(path, "tick")
    assert path.read_bytes().count(b"tick") == 3


def test_what_is_found_at_every_look_is_told_once_within_the_hour(path: Path) -> None:
    for _ in range(3):
        journal.record_once(path, "problem", "dev-a-1", "it is broken")
        journal.record_once(path, "problem", "dev-a-1", "and so is this")
    journal.record_once(path, "problem", "dev-a-2", "it is broken")
    told = [(e.session, e.detail) for e in journal.read(path)]
    assert told == [
        ("dev-a-1", "it is broken"),
        ("dev-a-1", "and so is this"),
        ("dev-a-2", "it is broken"),
    ]
    lines = [msgspec.json.encode(msgspec.structs.replace(e, at=1.0)) for e in journal.read(path)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    journal.record_once(path, "problem", "dev-a-1", "it is broken")
    assert len(list(journal.read(path))) == 4
