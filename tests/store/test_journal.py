from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.base.errors import StateError
from sm.store import journal
from sm.store.events import Decided, Event, Problem, Started
from sm.store.journal import LINE_LIMIT, ROTATE_AT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal is."""
    return tmp_path / "journal.jsonl"


def said(path: Path, text: str, session: str = "") -> None:
    journal.record(path, Problem(session=session, text=text))


def texts(found: Iterable[Event]) -> list[str]:
    return [event.text for event in found if isinstance(event, Problem)]


def test_events_are_read_in_order_and_by_session(path: Path) -> None:
    began = time.time()
    journal.record(path, Started(session="dev-a-1", title="Mend it"))
    said(path, "of no session")
    journal.record(path, Decided(session="dev-a-1", row="merged"))
    assert [type(event) for event in journal.read(path)] == [Started, Problem, Decided]
    started, decided = journal.read(path, "dev-a-1")
    assert began <= started.at <= decided.at <= time.time()
    assert started == Started(at=started.at, session="dev-a-1", title="Mend it")
    assert decided == Decided(at=decided.at, session="dev-a-1", row="merged", phase="")


def test_no_journal_has_no_events(path: Path) -> None:
    assert list(journal.read(path)) == []


@pytest.mark.parametrize("letter", ["x", "ü", "\n", "\x01", '"', "✓", "𝕏"])
def test_a_long_line_is_cut_below_4_kb(path: Path, letter: str) -> None:
    said(path, letter * 10_000, "dev-a-1")
    line = path.read_bytes()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line) <= LINE_LIMIT + 1
    (event,) = journal.read(path)
    assert isinstance(event, Problem)
    assert event.text.endswith("…")
    assert event.text.strip("…").strip(letter) == ""


@given(st.text(max_size=6000))
def test_every_detail_makes_one_short_line(detail: str) -> None:
    path = Path(os.environ["TMPDIR"]) / "journal.jsonl"
    path.unlink(missing_ok=True)
    detail = detail.encode("utf-8", "replace").decode()
    said(path, detail, "dev-a-1")
    assert len(path.read_bytes()) <= LINE_LIMIT + 1
    (event,) = journal.read(path)
    assert isinstance(event, Problem)
    assert event.text == detail or event.text.endswith("…")


def test_a_full_journal_is_kept_once_and_still_read(path: Path) -> None:
    said(path, "oldest")
    path.rename(f"{path}.1")
    said(path, "old")
    with path.open("ab") as full:
        full.truncate(ROTATE_AT + 1)
    said(path, "new")
    assert path.stat().st_size < 200
    # What a crash left behind, here zeros, is passed over.
    assert texts(journal.read(path)) == ["old", "new"]


def test_lines_that_are_no_events_are_passed_over(path: Path) -> None:
    said(path, "first")
    with path.open("ab") as damaged:
        damaged.write(b'{"at": 1, "eve')
    said(path, "last")
    assert texts(journal.read(path)) == ["first", "last"]


def test_an_event_is_plain_json_for_other_tools(path: Path) -> None:
    said(path, 'a "quote"\nand a line', "dev-a-1")
    event = json.loads(path.read_bytes())
    assert event.pop("at") > 0
    text = 'a "quote"\nand a line'
    assert event == {"kind": "problem", "session": "dev-a-1", "text": text}


def test_a_damaged_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    said(path, "begun", "ann")
    with path.open("ab") as file:
        file.write(b'{"at":1.0,"event":"\xff","session":"ann","detail":""}\n{"at":\n')
        file.write(b'{"kind":"problem","text":"at no time"}\n{"at":1.0,"kind":"of the future"}\n')
    said(path, "ended", "ann")
    assert texts(journal.read(path)) == ["begun", "ended"]
    assert texts(journal.find_latest(path, {"ann"}).values()) == ["ended"]


@pytest.mark.parametrize("which", ["journal.jsonl", "journal.jsonl.1"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_plain_file_is_refused_and_waited_for_by_nobody(
    path: Path, which: str, make: Callable[[Path], None]
) -> None:
    make(path.with_name(which))
    for reading in (journal.read, journal.read_newest_first, journal.read_backwards):
        with pytest.raises(StateError, match=which):
            list(reading(path))


def test_a_journal_that_cannot_be_put_aside_goes_on(path: Path) -> None:
    said(path, "tick")
    os.truncate(path, ROTATE_AT + 1)
    path.with_name("journal.jsonl.1").mkdir()
    for _ in range(2):
        said(path, "tick")
    assert path.read_bytes().count(b"tick") == 3


def test_what_is_found_at_every_look_is_told_once_within_the_hour(path: Path) -> None:
    for _ in range(3):
        journal.record_once(path, Problem(session="dev-a-1", text="it is broken"))
        journal.record_once(path, Problem(session="dev-a-1", text="and so is this"))
    journal.record_once(path, Problem(session="dev-a-2", text="it is broken"))
    told = [(e.session, *texts([e])) for e in journal.read(path)]
    assert told == [
        ("dev-a-1", "it is broken"),
        ("dev-a-1", "and so is this"),
        ("dev-a-2", "it is broken"),
    ]
    lines = [msgspec.json.encode(msgspec.structs.replace(e, at=1.0)) for e in journal.read(path)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    journal.record_once(path, Problem(session="dev-a-1", text="it is broken"))
    assert len(list(journal.read(path))) == 4


def test_events_behind_a_position_are_read_once_also_across_a_new_journal(path: Path) -> None:
    said(path, "before")
    start = journal.find_size(path)
    long = "one" + "x" * 100
    said(path, long, "dev-a-1")
    events, end = journal.read_since(path, start)
    assert (texts(events), end) == ([long], path.stat().st_size)
    assert journal.read_since(path, end) == ([], end)
    said(path, "two")
    path.rename(path.with_name(path.name + ".1"))
    said(path, "three")
    with path.open("ab") as half:
        half.write(b'{"at": 1, "event": "ha')
    events, end = journal.read_since(path, end)
    assert texts(events) == ["two", "three"]
    assert journal.read_since(path, end) == ([], end)


def test_the_longest_of_several_texts_is_cut_first(path: Path) -> None:
    event = Decided(session="dev-a-1", row="merged", phase="x" * 5000)
    journal.record(path, event)
    [read] = journal.read(path)
    assert isinstance(read, Decided)
    assert read.row == "merged"
    assert read.phase.endswith("x…")


def test_what_is_too_long_is_known_again_as_well(path: Path) -> None:
    for _ in range(2):
        journal.record_once(path, Problem(text="x" * 5000))
    assert len(list(journal.read(path))) == 1


def test_a_reader_goes_on_where_it_stopped_and_waits_for_the_end_of_a_line(path: Path) -> None:
    reader = journal.Reader(path)
    assert not list(reader.read_on())
    said(path, "one")
    with path.open("ab") as half:
        half.write(b'{"kind":"problem","at":1,"te')
    assert texts(reader.read_on()) == ["one"]
    with path.open("ab") as rest:
        rest.write(b'xt":"two"}\n')
    assert texts(reader.read_on()) == ["two"]
    path.rename(journal.name_previous(path))
    with journal.name_previous(path).open("ab") as older:  # a writer that had it open
        older.write(b'{"kind":"problem","at":1,"text":"three"}\n')
    said(path, "four")
    assert texts(reader.read_on()) == ["three", "four"]
    assert not list(reader.read_on())
