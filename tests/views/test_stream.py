"""The stream of events: nothing is lost or told twice, whatever becomes of the journal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sm.store import journal
from sm.store.events import Problem, Started
from sm.views.stream import follow_events, make_json
from tests.events import encode_line


class EnoughError(Exception):
    """The test has seen what it wants to see."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def said(path: Path, text: str, session: str = "") -> None:
    journal.record(path, Problem(session=session, text=text))


def put_aside(path: Path) -> None:
    path.replace(journal.name_previous(path))


def read_texts(path: Path, since: float = 0.0, session: str = "") -> list[str]:
    return [as_text(event) for event in follow_events(path, since=since, session=session)]


def as_text(event: object) -> str:
    assert isinstance(event, Problem)
    return event.text


def collect(path: Path, *deeds: Callable[[], object], since: float = 0.0) -> list[str]:
    """What is told while one deed after the other is done, one before each look."""
    found = list[str]()
    left = iter(deeds)

    def pause() -> None:
        next(left, end)()

    def end() -> None:
        if next(more, None) is None:
            raise EnoughError

    more = iter(range(3))
    with suppress(EnoughError):
        for event in follow_events(path, since=since, pause=pause):
            found.append(as_text(event))
    return found


def test_what_is_there_is_told_oldest_first_also_of_the_journal_before(path: Path) -> None:
    assert read_texts(path) == []
    said(path, "first")
    put_aside(path)
    said(path, "second", "dev-a-1")
    said(path, "third", "dev-a-12")
    assert read_texts(path) == ["first", "second", "third"]
    assert read_texts(path, session="dev-a-1") == ["second"]
    assert read_texts(path, since=time.time() + 60) == []


def test_since_leaves_out_what_was_before(path: Path) -> None:
    path.write_bytes(encode_line(Problem(text="old", at=time.time() - 700)))
    path.chmod(0o600)
    said(path, "new")
    assert read_texts(path, since=time.time() - 600) == ["new"]
    assert read_texts(path, since=time.time() - 800) == ["old", "new"]


def test_what_comes_is_told_as_it_comes(path: Path) -> None:
    said(path, "before")
    deeds = (lambda: said(path, "one"), lambda: None, lambda: said(path, "two"))
    assert collect(path, *deeds) == ["before", "one", "two"]


def test_from_now_on_nothing_of_the_past_is_told_and_a_clock_that_is_set_back_hides_nothing(
    path: Path,
) -> None:
    said(path, "before")
    deeds = (lambda: said(path, "one"),)
    assert collect(path, *deeds, since=time.time() + 3600) == ["one"]


def test_a_journal_that_is_not_there_yet_is_waited_for(path: Path) -> None:
    assert collect(path, lambda: None, lambda: said(path, "one")) == ["one"]


def test_a_journal_that_is_begun_anew_is_followed_without_a_gap(path: Path) -> None:
    said(path, "before")

    def rotate() -> None:
        said(path, "last of the old")
        put_aside(path)
        said(path, "first of the new")

    def write_late() -> None:
        """As a process that had opened the journal before it was put aside."""
        said(journal.name_previous(path), "late")

    found = collect(path, rotate, write_late, lambda: said(path, "second of the new"))
    assert found == [
        *("before", "last of the old", "late", "first of the new", "second of the new"),
    ]


def test_a_journal_that_is_begun_anew_twice_is_followed(path: Path) -> None:
    said(path, "one")

    def begin_with(text: str) -> None:
        put_aside(path)
        said(path, text)

    deeds = (lambda: begin_with("two"), lambda: None, lambda: begin_with("three"))
    assert collect(path, *deeds) == ["one", "two", "three"]


def test_a_journal_that_is_cut_short_is_followed_from_its_beginning(path: Path) -> None:
    said(path, "a long line before it")

    def cut() -> None:
        os.truncate(path, 0)
        said(path, "one")

    assert collect(path, cut, lambda: said(path, "two")) == ["a long line before it", "one", "two"]


def test_a_journal_that_is_removed_is_waited_for(path: Path) -> None:
    said(path, "one")
    found = collect(path, path.unlink, lambda: None, lambda: None, lambda: said(path, "two"))
    assert found == ["one", "two"]


def test_half_a_line_is_told_when_it_is_whole(path: Path) -> None:
    said(path, "one")
    line = encode_line(Problem(text="two", at=1.0))

    def write(part: bytes) -> None:
        with path.open("ab") as lines:
            lines.write(part)

    assert collect(path, lambda: write(line[:9]), lambda: write(line[9:])) == ["one", "two"]


def test_json_has_every_field_of_its_kind_also_an_empty_one() -> None:
    event = Started(at=5.0, session="dev-a-1")
    assert make_json(event) == {
        "kind": "started",
        "at": 5.0,
        "session": "dev-a-1",
        "title": "",
        "words": "started the agent",
    }
