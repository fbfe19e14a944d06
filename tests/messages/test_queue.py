from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.base.errors import StateError, UsageError
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder, Mode
from sm.store.paths import SessionDir
from tests.helpers import HANG_S


@pytest.fixture
def directory(tmp_path: Path) -> SessionDir:
    found = SessionDir(tmp_path / "session")
    found.path.mkdir(mode=0o700)
    return found


def message(
    ident: str, text: str = "hello", mode: Mode = Mode.SEQUENTIAL, at: float = 1.0
) -> Message:
    return Message(id=ident * 8, text=text, mode=mode, created_at=at)


def test_a_message_is_where_its_file_is(directory: SessionDir) -> None:
    one = message("a")
    assert queue.is_empty(directory)
    assert queue.put(directory, one)
    assert queue.find_place(directory, one.id) is MessageFolder.WAITING
    assert queue.move(directory, one, MessageFolder.WAITING, MessageFolder.HANDED)
    assert not queue.move(directory, one, MessageFolder.WAITING, MessageFolder.HANDED)
    assert queue.find_place(directory, one.id) is MessageFolder.HANDED
    assert not queue.is_empty(directory)
    queue.settle(directory, one)
    assert queue.find_place(directory, one.id) is MessageFolder.DONE
    assert queue.list_messages(directory, MessageFolder.DONE) == [one]


def test_a_message_is_queued_once_wherever_it_is_by_then(directory: SessionDir) -> None:
    one = message("a")
    assert queue.put(directory, one)
    assert not queue.put(directory, one)
    queue.move(directory, one, MessageFolder.WAITING, MessageFolder.HANDED)
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
    found = [m.id[0] for m in queue.list_messages(directory, MessageFolder.WAITING)]
    assert found == ["d", "c", "e", "a", "b", "f"]


def test_any_text_comes_back_as_it_was(directory: SessionDir) -> None:
    text = "a\"'`$\\\n\t\u2028é✓👩‍👩‍👧\r" * 1000
    queue.put(directory, message("a", text))
    assert queue.list_messages(directory, MessageFolder.WAITING)[0].text == text


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


def test_a_hook_finds_what_is_shown_of_a_message_for_the_running_turn(
    directory: SessionDir,
) -> None:
    """Only there: at a turn's end the agent CLI shows the text itself."""
    for letter, mode in zip("abcd", Mode, strict=True):
        one = message(letter, "é\n" * 100, mode)
        queue.put(directory, one)
        _, _, *more = (directory.queue / "new" / one.name).read_bytes().split(b"\n")
        if mode is not Mode.STEER:
            assert more == [b""]
            continue
        shown, rest = more
        whole = f"sm queue session --show {one.id}"
        assert json.loads(shown) == "é\n" * 40 + f"… all of it: {whole}"
        assert (shown.isascii(), rest) == (True, b"")
        assert queue.find(directory, MessageFolder.WAITING, one.id) == one


def test_of_a_persons_message_the_sender_is_shown_too(directory: SessionDir) -> None:
    told = Message(id="a" * 8, text="[sm] CI passed.")
    assert queue.phrase(directory, told) == "[sm] CI passed."
    peers = Message(id="a" * 8, text="[sm] message from ann:\nx", sender="s-1", source="ann")
    assert queue.phrase(directory, peers) == "[sm] message from ann:\nx"
    persons = Message(id="a" * 8, text="Go on.", source="a person", summary="Go on")
    assert queue.phrase(directory, persons) == "[sm] From a person:\nGo on."


def test_a_message_that_was_queued_before_there_were_sources_is_read(
    directory: SessionDir,
) -> None:
    one = message("a", "of old", Mode.STEER)
    queue.put(directory, one)
    path = directory.queue / "new" / one.name
    first, second, *_ = path.read_bytes().split(b"\n")
    old = {k: v for k, v in json.loads(second).items() if k not in ("source", "summary")}
    path.write_bytes(first + b"\n" + json.dumps(old).encode() + b"\n")
    assert queue.list_messages(directory, MessageFolder.WAITING) == [one]


def test_a_message_that_nobody_has_handed_over_can_be_taken_back(directory: SessionDir) -> None:
    one, other = message("a"), message("b")
    queue.put(directory, one)
    queue.put(directory, other)
    queue.move(directory, other, MessageFolder.WAITING, MessageFolder.HANDED)
    assert queue.withdraw(directory, one.id)
    assert queue.find_place(directory, one.id) is None
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
    assert queue.list_messages(directory, MessageFolder.WAITING) == [one]


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
        queue.move(directory, one, MessageFolder.WAITING, MessageFolder.HANDED)
        queue.settle(directory, one)
    assert [m.id[-1] for m in queue.list_messages(directory, MessageFolder.DONE)] == ["2", "3"]


def damage(directory: SessionDir, damaged: Message, content: bytes) -> Path:
    path = directory.queue / "new" / damaged.name
    path.write_bytes(content)
    return path


DAMAGED = [b"", b"nonsense", b'"\xff"\n{}\n', b'"text"\n{"id": "\xff"}\n', b'"text"\n{"id": 1}\n']


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_message_is_named(directory: SessionDir, content: bytes) -> None:
    one = message("a")
    queue.put(directory, one)
    with pytest.raises(StateError, match=str(one.id)):
        queue.read(damage(directory, one, content))


def test_a_damaged_message_is_in_nobodys_way_and_named_once(
    directory: SessionDir, capsys: pytest.CaptureFixture[str]
) -> None:
    first, damaged, last = message("a", at=1.0), message("b", at=2.0), message("c", at=3.0)
    for one in (first, damaged, last):
        queue.put(directory, one)
    damage(directory, damaged, b'"\xff"\n{}\n')
    assert queue.list_messages(directory, MessageFolder.WAITING) == [first, last]
    assert capsys.readouterr().err.count(damaged.id) == 1
    assert [path.name for path in queue.list_damaged(directory)] == [damaged.name]
    assert queue.list_messages(directory, MessageFolder.WAITING) == [first, last]
    assert capsys.readouterr().err == ""


def test_nobody_waits_for_a_damaged_message(directory: SessionDir) -> None:
    one = message("a")
    queue.put(directory, one)
    damage(directory, one, b"nonsense")
    assert queue.find(directory, MessageFolder.WAITING, one.id) is None
    assert queue.is_empty(directory)
    assert queue.put(directory, one)  # what can be told again is told again
    assert queue.list_messages(directory, MessageFolder.WAITING) == [one]


@pytest.mark.parametrize(
    "damage", [lambda path: path.symlink_to("/dev/null"), Path.mkdir, os.mkfifo]
)
def test_whatever_is_in_place_of_a_message_is_set_aside_and_holds_no_other_up(
    directory: SessionDir, damage: Callable[[Path], object]
) -> None:
    one, two = message("a"), message("b")
    queue.put(directory, one)
    queue.put(directory, two)
    path = directory.queue / "new" / one.name
    path.unlink()
    damage(path)
    assert queue.list_messages(directory, MessageFolder.WAITING) == [two]
    assert queue.list_damaged(directory) == [directory.queue / "damaged" / one.name]


@pytest.mark.parametrize("ident", ["", "short", "UPPERCASE", "a/../../../b", "a" * 41])
def test_an_id_that_could_not_be_a_file_name_is_refused(directory: SessionDir, ident: str) -> None:
    with pytest.raises(UsageError):
        queue.put(directory, Message(id=ident, text="x"))


PUT = """
import sys, time
from pathlib import Path
from sm.messages import queue
from sm.store.paths import SessionDir
directory, rounds = SessionDir(Path(sys.argv[1])), int(sys.argv[2])
for number in range(rounds):
    print(number, flush=True)
    sys.stdin.readline()
    queue.put(directory, queue.Message(id=f"{number:08d}", text="told"))
"""


def test_a_notification_that_several_tell_at_once_is_queued_once(directory: SessionDir) -> None:
    rounds = 20
    tellers = [
        subprocess.Popen(
            [sys.executable, "-c", PUT, str(directory.path), str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for _ in range(rounds):
        for one in tellers:
            assert one.stdout
            one.stdout.readline()
        for one in tellers:
            assert one.stdin
            one.stdin.write("\n")
            one.stdin.flush()
    for one in tellers:
        one.communicate(timeout=HANG_S)
        assert one.returncode == 0
    told = [one.id for one in queue.list_messages(directory, MessageFolder.WAITING)]
    assert told == [f"{number:08d}" for number in range(rounds)]
    assert not list((directory.queue / "tmp").iterdir())


BACK_AND_FORTH = """
import sys
from pathlib import Path
from sm.messages import queue
from sm.messages.queue import MessageFolder
from sm.store.paths import SessionDir
directory = SessionDir(Path(sys.argv[1]))
[one] = queue.list_messages(directory, MessageFolder.WAITING)
print("ready", flush=True)
while True:
    queue.move(directory, one, MessageFolder.WAITING, Place.HANDED)
    queue.move(directory, one, MessageFolder.HANDED, Place.WAITING)
"""


def test_a_message_that_is_just_put_back_is_known(directory: SessionDir) -> None:
    one = message("a")
    queue.put(directory, one)
    with subprocess.Popen(
        [sys.executable, "-c", BACK_AND_FORTH, str(directory.path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as mover:
        assert mover.stdout
        assert mover.stdout.readline() == "ready\n"
        known = [queue.put(directory, message("a", at=2.0)) for _ in range(3000)]
        mover.kill()
    assert not any(known)


def test_a_message_for_a_session_that_is_gone_makes_no_remnant(directory: SessionDir) -> None:
    directory.path.rmdir()
    with pytest.raises(StateError, match="gone"):
        queue.put(directory, message("a"))
    with pytest.raises(StateError, match="gone"):
        queue.accept(directory, "a" * 8)
    assert not directory.path.exists()


def test_a_session_that_goes_while_a_message_is_queued_is_an_error_that_says_so(
    directory: SessionDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def go_then_rename(path: Path, target: Path) -> Path:
        monkeypatch.undo()
        directory.path.rename(directory.path.with_name(".removed"))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", go_then_rename)
    with pytest.raises(StateError, match="gone"):
        queue.put(directory, message("a"))


def test_the_steer_mark_of_a_message_that_comes_meanwhile_stands(
    directory: SessionDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def put_then_unlink(path: Path, missing_ok: bool = False) -> None:
        if path == directory.steer:
            monkeypatch.undo()
            queue.put(directory, message("a", mode=Mode.STEER))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", put_then_unlink)
    queue.tidy(directory)
    assert directory.steer.read_text()


def test_a_mark_that_a_hook_has_emptied_stays_empty(directory: SessionDir) -> None:
    queue.put(directory, message("a", mode=Mode.STEER))
    directory.steer.write_text("")
    queue.tidy(directory)
    assert directory.steer.read_text() == ""


def test_one_message_is_found_without_reading_the_others(directory: SessionDir) -> None:
    one, other = message("a"), message("b")
    queue.put(directory, one)
    queue.put(directory, other)
    damage(directory, other, b"nonsense")
    assert queue.find(directory, MessageFolder.WAITING, one.id) == one
    assert queue.find(directory, MessageFolder.DONE, one.id) is None
    assert queue.find(directory, MessageFolder.WAITING, "*") is None
    assert not queue.list_damaged(directory)


def test_the_age_of_the_oldest_is_told_by_names(directory: SessionDir) -> None:
    both = (MessageFolder.WAITING, MessageFolder.HANDED)
    assert queue.find_oldest_at(directory, *both) is None
    old, young = message("a", at=100.5), message("b", mode=Mode.URGENT, at=200.5)
    for one in (young, old):
        queue.put(directory, one)
        damage(directory, one, b"nonsense")
    assert queue.find_oldest_at(directory, *both) == 100.5
    assert queue.move(directory, old, MessageFolder.WAITING, MessageFolder.HANDED)
    assert queue.find_oldest_at(directory, MessageFolder.WAITING) == 200.5
    assert queue.find_oldest_at(directory, *both) == 100.5
