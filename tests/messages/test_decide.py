"""What is done with a message, for every combination of what can be known of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TypeVar, get_type_hints

import pytest
from msgspec import Struct

from sm.adapters.agent.prompt import Prompt
from sm.base.refusal import Refusal
from sm.messages.decide import (
    FirstAction,
    Handed,
    Heard,
    Offered,
    Overtaken,
    PendingAction,
    Terminal,
    Typed,
    decide_handed,
    decide_waiting,
    find_key_obstacle,
)

T = TypeVar("T", bound=Struct)


def combine(kind: type[T]) -> Iterator[T]:
    """Every value of a struct whose fields are flags and enums."""
    fields = get_type_hints(kind)
    choices = [(False, True) if each is bool else tuple(each) for each in fields.values()]
    for values in product(*choices):
        yield kind(**dict(zip(fields, values, strict=True)))


TERMINALS = list(combine(Terminal))
HANDED: list[Handed] = [*combine(Offered), *combine(Typed), *combine(Overtaken)]


def test_a_text_is_typed_only_where_it_begins_a_turn_and_a_draft_survives() -> None:
    typed = 0
    for at, urgent in product(TERMINALS, (False, True)):
        if decide_waiting(at, urgent=urgent) is FirstAction.TYPE:
            typed += 1
            assert at.prompt is Prompt.IDLE
            assert at.takes_keys
            assert not any((at.runs_shell, at.is_starting, at.opens_dialog, at.scrolled))
            assert at.can_stash or not at.draft
    assert typed


def test_only_an_urgent_message_interrupts_and_no_compaction() -> None:
    interrupted = 0
    for at, urgent in product(TERMINALS, (False, True)):
        if decide_waiting(at, urgent=urgent) is FirstAction.INTERRUPT:
            interrupted += 1
            assert urgent
            assert at.prompt is Prompt.BUSY
            assert at.can_interrupt
            assert not at.is_compacting
            assert find_key_obstacle(at) is None
    assert interrupted


def test_what_is_left_of_a_message_is_erased_first_and_only_where_keys_may_be_pressed() -> None:
    for at, urgent in product(TERMINALS, (False, True)):
        start = decide_waiting(at, urgent=urgent)
        assert (start is FirstAction.ERASE) == (at.holds_rest and find_key_obstacle(at) is None)
        assert not at.holds_rest or start not in (FirstAction.TYPE, FirstAction.INTERRUPT)


def test_only_a_menu_without_need_of_an_answer_is_closed() -> None:
    closed = 0
    for at, urgent in product(TERMINALS, (False, True)):
        if decide_waiting(at, urgent=urgent) is FirstAction.CLOSE:
            closed += 1
            assert at.prompt is Prompt.DIALOG
            assert at.shows_menu
            assert find_key_obstacle(at) is None
    assert closed


@pytest.mark.parametrize(
    ("at", "refusal"),
    [
        (Terminal(prompt=Prompt.BUSY), Refusal.BUSY),
        (Terminal(prompt=Prompt.DIALOG), Refusal.DIALOG),
        (Terminal(prompt=Prompt.NONE), Refusal.NO_PROMPT),
        (Terminal(prompt=Prompt.NONE, scrolled=True), Refusal.DRAFT),
        (Terminal(prompt=Prompt.IDLE, draft=True, can_stash=False), Refusal.DRAFT),
        (Terminal(prompt=Prompt.IDLE, runs_shell=True), Refusal.SHELL),
        (Terminal(prompt=Prompt.IDLE, takes_keys=False, runs_shell=True), Refusal.MODE),
        (Terminal(prompt=Prompt.IDLE, is_typed_into=True), Refusal.CHANGED),
        (Terminal(prompt=Prompt.BUSY, is_compacting=True, can_interrupt=True), Refusal.COMPACTING),
        (Terminal(prompt=Prompt.BUSY, opens_dialog=True, can_interrupt=True), Refusal.DIALOG),
    ],
)
def test_a_refusal_says_what_is_in_the_way(at: Terminal, refusal: Refusal) -> None:
    assert decide_waiting(at, urgent=True) is refusal


def test_a_message_is_put_back_only_if_the_agent_certainly_does_not_have_it() -> None:
    put_back = 0
    for facts in HANDED:
        act = decide_handed(facts)
        if act is PendingAction.TAKE_BACK:
            assert isinstance(facts, Typed)
            assert not facts.typed
        elif act is PendingAction.PUT_BACK:
            put_back += 1
            if isinstance(facts, Overtaken):
                assert facts.readable or not facts.typed
            else:
                assert facts.heard is Heard.NO
    assert put_back


def test_what_was_typed_as_often_as_may_be_is_not_put_back() -> None:
    for facts in HANDED:
        if not isinstance(facts, Offered) and facts.exhausted:
            assert decide_handed(facts) is not PendingAction.PUT_BACK


def test_while_a_receipt_may_come_nothing_is_concluded() -> None:
    for facts in HANDED:
        match facts:
            case (
                Offered(may_come=True)
                | Typed(typed=True, confirms=True, stands=False, is_early=True)
            ):
                assert decide_handed(facts) is PendingAction.WAIT


def test_the_keys_that_submit_are_pressed_only_for_what_stands_there() -> None:
    pressed = 0
    for facts in HANDED:
        if decide_handed(facts) is PendingAction.SUBMIT:
            pressed += 1
            assert isinstance(facts, Typed)
            assert facts.typed
            assert facts.stands
            assert facts.passes
    assert pressed


def test_the_transcript_is_asked_once_at_most() -> None:
    for facts in HANDED:
        if decide_handed(facts) is PendingAction.LOOK_UP:
            assert not isinstance(facts, Overtaken)
            assert facts.heard is Heard.UNASKED


def test_what_is_left_of_a_message_in_the_composer_is_waited_for() -> None:
    missed = Typed(typed=True, heard=Heard.NO)
    assert decide_handed(missed) is PendingAction.PUT_BACK
    assert decide_handed(Typed(typed=True, heard=Heard.NO, is_left=True)) is PendingAction.WAIT


def test_what_cannot_be_looked_up_is_left_alone() -> None:
    assert decide_handed(Typed(typed=True, heard=Heard.UNKNOWN)) is PendingAction.LEAVE
    lost = Offered(may_come=False, readable=False, heard=Heard.UNKNOWN)
    assert decide_handed(lost) is PendingAction.LEAVE
    late = Offered(may_come=False, readable=True, heard=Heard.UNKNOWN)
    assert decide_handed(late) is PendingAction.WAIT
    assert decide_handed(Overtaken(typed=True, readable=False)) is PendingAction.LEAVE
