from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.base.errors import UsageError
from sm.plugins.chat.threads.handoffs import CompletedError, HandoffBridge, open_bridge
from sm.plugins.chat.threads.records import (
    ALPHABET,
    EntryType,
    HandoffClient,
    HandoffStatus,
    make_id,
)

CHAT, CODE = HandoffClient.CHAT, HandoffClient.CODE


@pytest.fixture
def handoffs(tmp_path: Path) -> Iterator[HandoffBridge]:
    with open_bridge(tmp_path / "bridge" / "core.db") as opened:
        yield opened


def begun(handoffs: HandoffBridge, client: HandoffClient = CHAT) -> str:
    return handoffs.create("Auth", "JWT, with refresh tokens.", client=client).handoff.id


def test_a_new_handoff_has_its_content_as_first_entry(handoffs: HandoffBridge) -> None:
    made = handoffs.create("Auth", "JWT.", project="dnd", client=CODE)
    assert re.fullmatch(r"hof_[A-Za-z0-9_-]{21}", made.handoff.id)
    assert (made.handoff.title, made.handoff.project) == ("Auth", "dnd")
    assert made.handoff.status is HandoffStatus.ACTIVE
    [entry] = made.entries
    assert (entry.type, entry.content, entry.from_client) == (EntryType.CONTEXT, "JWT.", CODE)
    assert entry.handoff_id == made.handoff.id


def test_ids_are_not_alike(handoffs: HandoffBridge) -> None:
    assert len({begun(handoffs) for _ in range(50)}) == 50
    assert set("".join(make_id()[4:] for _ in range(200))) == set(ALPHABET)


def test_it_says_when_it_was_written_to(handoffs: HandoffBridge) -> None:
    ident = begun(handoffs)

    def is_updated(write: Callable[[], object]) -> bool:
        handoffs.connection.execute("UPDATE handoffs SET updated_at = 'before'")
        write()
        return handoffs.handoff(ident).updated_at != "before"

    assert is_updated(lambda: handoffs.add(ident, EntryType.TASK, "x", CHAT))
    assert not is_updated(lambda: handoffs.mark_read(ident, CODE))
    assert is_updated(lambda: handoffs.close(ident))
    assert not is_updated(lambda: handoffs.close(ident))


def test_a_thread_is_of_one_moment(handoffs: HandoffBridge, tmp_path: Path) -> None:
    ident = begun(handoffs)

    def write_in_between(statement: str) -> None:
        if "FROM handoff_entries" in statement:
            handoffs.connection.set_trace_callback(None)
            with open_bridge(tmp_path / "bridge" / "core.db") as other:
                other.add(ident, EntryType.TASK, "In between.", CHAT)

    handoffs.connection.set_trace_callback(write_in_between)
    thread = handoffs.get(ident, CHAT)
    assert len(handoffs.entries(ident)) == 2
    assert [entry.seq for entry in thread.entries] == [thread.handoff.chat_last_seen]


def test_ones_own_writing_is_read_and_the_others_is_new(handoffs: HandoffBridge) -> None:
    ident = begun(handoffs)
    assert not handoffs.get(ident, CHAT).new_entries
    assert len(handoffs.get(ident, CODE).new_entries) == 1
    _, question = handoffs.add(ident, EntryType.QUESTION, "7d or 30d?", CODE)
    seen_by_code = handoffs.get(ident, CODE)
    assert not seen_by_code.new_entries
    assert seen_by_code.handoff.code_last_seen == question.seq
    assert handoffs.get(ident, CHAT).new_entries == (question,)


def test_reading_moves_no_cursor_and_marking_moves_ones_own(handoffs: HandoffBridge) -> None:
    ident = begun(handoffs)
    assert len(handoffs.get(ident, CODE).new_entries) == 1
    assert len(handoffs.get(ident, CODE).new_entries) == 1
    marked = handoffs.mark_read(ident, CODE)
    assert marked.code_last_seen == marked.chat_last_seen == handoffs.entries(ident)[-1].seq
    assert not handoffs.get(ident, CODE).new_entries
    assert handoffs.mark_read(ident, CODE) == marked


def test_a_cursor_stays_within_its_handoff(handoffs: HandoffBridge) -> None:
    ident, other = begun(handoffs), begun(handoffs)
    handoffs.add(other, EntryType.TASK, "Elsewhere.", CHAT)
    assert handoffs.mark_read(ident, CODE).code_last_seen == handoffs.entries(ident)[0].seq


def test_entries_come_in_order_with_growing_numbers(handoffs: HandoffBridge) -> None:
    ident, other = begun(handoffs), begun(handoffs)
    for number, type_ in enumerate(EntryType):
        handoffs.add(ident, type_, str(number), CODE if number % 2 else CHAT)
        handoffs.add(other, type_, "other", CHAT)
    entries = handoffs.get(ident, CHAT).entries
    assert [entry.content for entry in entries[1:]] == [str(n) for n in range(6)]
    assert [entry.type for entry in entries[1:]] == list(EntryType)
    numbers = [entry.seq for entry in entries]
    assert numbers == sorted(set(numbers))


def test_closing_wipes_the_entries_and_keeps_the_row(handoffs: HandoffBridge) -> None:
    ident, other = begun(handoffs), begun(handoffs)
    closed = handoffs.close(ident)
    assert closed.status is HandoffStatus.COMPLETED
    found = handoffs.get(ident, CODE)
    assert (found.handoff, found.entries) == (closed, ())
    assert handoffs.close(ident) == closed
    assert len(handoffs.entries(other)) == 1


def test_a_closed_handoff_takes_nothing_more(handoffs: HandoffBridge) -> None:
    ident = begun(handoffs)
    handoffs.close(ident)
    with pytest.raises(CompletedError, match=f"handoff '{ident}' is completed"):
        handoffs.add(ident, EntryType.DONE, "Late.", CODE)
    assert handoffs.entries(ident) == ()


def test_marking_a_closed_one_as_read_moves_no_cursor_back(handoffs: HandoffBridge) -> None:
    ident = begun(handoffs)
    handoffs.add(ident, EntryType.DONE, "All of it.", CODE)
    closed = handoffs.close(ident)
    for client in HandoffClient:
        assert handoffs.mark_read(ident, client) == closed


def test_numbers_of_wiped_entries_are_not_used_again(handoffs: HandoffBridge) -> None:
    ident = begun(handoffs)
    _, last = handoffs.add(ident, EntryType.TASK, "Last.", CHAT)
    handoffs.close(ident)
    assert handoffs.create("Next", "…", client=CHAT).entries[0].seq > last.seq


def test_what_was_never_there_is_named(handoffs: HandoffBridge) -> None:
    unknown = "hof_" + "a" * 21
    for call in (
        lambda: handoffs.get(unknown, CHAT),
        lambda: handoffs.add(unknown, EntryType.TASK, "x", CHAT),
        lambda: handoffs.mark_read(unknown, CHAT),
        lambda: handoffs.close(unknown),
    ):
        with pytest.raises(UsageError, match=f"no handoff '{unknown}': check the id"):
            call()


def test_with_a_key_an_entry_is_added_once(handoffs: HandoffBridge) -> None:
    ident, other = begun(handoffs), begun(handoffs)
    _, first = handoffs.add(ident, EntryType.QUESTION, "Which?", CODE, key="k")
    _, again = handoffs.add(ident, EntryType.QUESTION, "Which?", CODE, key="k")
    assert again == first
    assert handoffs.add(other, EntryType.QUESTION, "Which?", CODE, key="k")[1].seq > first.seq
    assert len(handoffs.entries(ident)) == 2


@pytest.mark.parametrize(
    "text", ["\0", "a\r\nb\t", "👩‍👩‍👧 'quotes\" -- ; DROP TABLE handoffs", " "]
)
def test_a_text_comes_back_as_it_was(handoffs: HandoffBridge, text: str) -> None:
    ident = handoffs.create("t", text, client=CHAT).handoff.id
    assert handoffs.entries(ident)[0].content == text
