from __future__ import annotations

import json
from pathlib import Path

import pytest

from sm.errors import StateError, UsageError
from sm.session import queue
from sm.session.queue import Message, Mode, Place
from sm.store.paths import SessionDir


@pytest.fixture
def directory(tmp_path: Path) -> SessionDir:
    return SessionDir(tmp_path / "session")


def message(
    ident: str, text: str = "hello", mode: Mode = Mode.SEQUENTIAL, at: float = 1.0
) -> Message:
    return Message(id=ident * 8, text=text, mode=mode, created_at=at)


def test_a_message_is_where_its_file_is(directory: SessionDir) -> None:
    one = message("a")
    assert queue.is_empty(directory)
    assert queue.put(directory, one)
    assert queue.place(directory, one.id) is Place.WAITING
    assert queue.move(directory, one, Place.WAITING, Place.HANDED)
    assert not queue.move(directory, one, Place.WAITING, Place.HANDED)
    assert queue.place(directory, one.id) is Place.HANDED
    assert not queue.is_empty(directory)
    queue.settle(directory, one)
    assert queue.place(directory, one.id) is Place.DONE
    assert queue.messages(directory, Place.DONE) == [one]


def test_a_message_is_queued_once_wherever_it_is_by_then(directory: SessionDir) -> None:
    one = message("a")
    assert queue.put(directory, one)
    assert not queue.put(directory, one)
    queue.move(directory, one, Place.WAITING, Place.HANDED)
    assert not queue.put(directory, one)
    queue.settle(directory, one)
    assert not queue.put(directory, one)


def test_urgent_and_important_ones_go_before_and_the_others_by_age(directory: SessionDir) -> None:
    for one in (
        message("a", at=1),
        message("b", mode=Mode.STEER, at=2),
        message("c", mode=Mode.IMPORTANT, at=3),
        message("d", mode=Mode.URGENT, at=4),
        message("e", mode=Mode.IMPORTANT, at=5),
        message("f", at=6),
    ):
        queue.put(directory, one)
    found = [m.id[0] for m in queue.messages(directory, Place.WAITING)]
    assert found == ["d", "c", "e", "a", "b", "f"]


def test_any_text_comes_back_as_it_was(directory: SessionDir) -> None:
    text = "a\"'`$\\\n\t\u2028é✓👩‍👩‍👧\r" * 1000
    queue.put(directory, message("a", text))
    assert queue.messages(directory, Place.WAITING)[0].text == text


def test_a_hook_finds_the_text_as_one_line_of_ascii_json_and_its_size(
    directory: SessionDir,
) -> None:
    one = message("a", "é\n👍")
    queue.put(directory, one)
    first, second, rest = (directory.queue / "new" / one.name).read_bytes().split(b"\n")
    assert first == b'"\\u00e9\\n\\ud83d\\udc4d"'
    assert second.startswith(b'{"size":4,')
    assert json.loads(second)["id"] == one.id
    assert rest == b""


def test_a_message_that_nobody_has_handed_over_can_be_taken_back(directory: SessionDir) -> None:
    one, other = message("a"), message("b")
    queue.put(directory, one)
    queue.put(directory, other)
    queue.move(directory, other, Place.WAITING, Place.HANDED)
    assert queue.withdraw(directory, one.id)
    assert queue.place(directory, one.id) is None
    assert not queue.withdraw(directory, other.id)


def test_what_a_killed_writer_has_left_is_no_message_and_is_cleared(directory: SessionDir) -> None:
    import os

    one = message("a")
    queue.put(directory, one)
    left = directory.queue / "tmp" / f"{one.name}.0123"
    left.write_bytes(b"half")
    os.utime(left, (1, 1))
    queue.tidy(directory)
    assert not left.exists()
    assert queue.messages(directory, Place.WAITING) == [one]


def test_the_steer_mark_stands_as_long_as_one_waits(directory: SessionDir) -> None:
    one = message("a", mode=Mode.STEER)
    queue.put(directory, one)
    queue.tidy(directory)
    assert directory.steer.read_text()
    queue.withdraw(directory, one.id)
    queue.tidy(directory)
    assert not directory.steer.exists()


def test_only_so_many_delivered_ones_are_kept(
    directory: SessionDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "KEPT", 2)
    for number in range(4):
        one = Message(id=f"{number:08d}", text="x", created_at=number)
        queue.put(directory, one)
        queue.move(directory, one, Place.WAITING, Place.HANDED)
        queue.settle(directory, one)
    assert [m.id[-1] for m in queue.messages(directory, Place.DONE)] == ["2", "3"]


def test_a_damaged_message_is_named(directory: SessionDir) -> None:
    one = message("a")
    queue.put(directory, one)
    path = directory.queue / "new" / one.name
    path.write_bytes(b"nonsense")
    with pytest.raises(StateError, match=str(one.id)):
        queue.messages(directory, Place.WAITING)


def test_a_damaged_message_is_in_the_way_of_those_behind_it_only(directory: SessionDir) -> None:
    first, damaged = message("a", at=1.0), message("b", at=2.0)
    for one in (first, damaged):
        queue.put(directory, one)
    (directory.queue / "new" / damaged.name).write_bytes(b"nonsense")
    found = queue.each(directory, Place.WAITING)
    assert next(found) == first
    with pytest.raises(StateError, match=str(damaged.id)):
        next(found)


@pytest.mark.parametrize("ident", ["", "short", "UPPERCASE", "a/../../../b", "a" * 41])
def test_an_id_that_could_not_be_a_file_name_is_refused(directory: SessionDir, ident: str) -> None:
    with pytest.raises(UsageError):
        queue.put(directory, Message(id=ident, text="x"))
