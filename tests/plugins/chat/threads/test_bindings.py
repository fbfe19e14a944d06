from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.plugins.chat.threads.bindings import (
    Binding,
    bind,
    find_binding,
    list_about_issue,
    list_waiting,
    mark_handed,
)
from sm.plugins.chat.threads.handoffs import CompletedError, HandoffBridge, open_bridge
from sm.plugins.chat.threads.records import EntryType, HandoffClient


@pytest.fixture
def handoffs(tmp_path: Path) -> Iterator[HandoffBridge]:
    with open_bridge(tmp_path / "bridge" / "core.db") as opened:
        yield opened


@pytest.fixture
def bound(handoffs: HandoffBridge) -> Binding:
    ident = handoffs.create("t", "c", client=HandoffClient.CHAT).handoff.id
    return bind(handoffs, ident, "harb", 7)


def list_waiting_texts(handoffs: HandoffBridge, ident: str) -> list[str]:
    binding = find_binding(handoffs, ident)
    assert binding
    return [entry.content for entry in list_waiting(handoffs, binding)]


def test_what_the_chat_says_waits_until_it_was_handed_over(
    handoffs: HandoffBridge, bound: Binding
) -> None:
    for type_ in EntryType:
        for client in HandoffClient:
            handoffs.add(bound.handoff_id, type_, f"{client} {type_}", client)
    expected = ["c", "chat context", "chat task", "chat decision"]
    assert list_waiting_texts(handoffs, bound.handoff_id) == expected
    first, second, *_ = list_waiting(handoffs, bound)
    mark_handed(handoffs, bound, second)
    mark_handed(handoffs, bound, first)  # who was slower says so later, to no effect
    assert list_waiting_texts(handoffs, bound.handoff_id) == expected[2:]


def test_bound_to_the_same_issue_again_nothing_is_handed_over_twice(
    handoffs: HandoffBridge, bound: Binding
) -> None:
    [entry] = list_waiting(handoffs, bound)
    mark_handed(handoffs, bound, entry)
    assert bind(handoffs, bound.handoff_id, "harb", 7).handed_seq == entry.seq
    assert list_waiting_texts(handoffs, bound.handoff_id) == []


@pytest.mark.parametrize("place", [("harb", 8), ("hub", 7)])
def test_bound_to_another_issue_all_of_it_is_handed_over_there(
    handoffs: HandoffBridge, bound: Binding, place: tuple[str, int]
) -> None:
    mark_handed(handoffs, bound, list_waiting(handoffs, bound)[0])
    moved = bind(handoffs, bound.handoff_id, *place)
    assert list_about_issue(handoffs, "harb", 7) == ()
    assert list_about_issue(handoffs, *place) == (moved,)
    assert list_waiting_texts(handoffs, bound.handoff_id) == ["c"]


def test_bound_elsewhere_while_it_is_handed_over_all_of_it_is_handed_over_there(
    handoffs: HandoffBridge, bound: Binding
) -> None:
    [entry] = list_waiting(handoffs, bound)
    bind(handoffs, bound.handoff_id, "harb", 8)
    mark_handed(handoffs, bound, entry)
    assert list_waiting_texts(handoffs, bound.handoff_id) == ["c"]


def test_a_closed_one_is_about_no_issue_any_more(handoffs: HandoffBridge, bound: Binding) -> None:
    assert list_about_issue(handoffs, "harb", 7) == (bound,)
    handoffs.close(bound.handoff_id)
    assert list_about_issue(handoffs, "harb", 7) == ()
    with pytest.raises(CompletedError):
        bind(handoffs, bound.handoff_id, "harb", 7)
