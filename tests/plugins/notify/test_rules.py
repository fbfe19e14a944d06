"""What is sent when: decisions alone, at moments that are chosen."""

from __future__ import annotations

import math

import pytest
from msgspec import structs

from sm.base.need import NeedKind
from sm.plugins.notify.model import AGAIN, ChannelTrouble, HeldWord, Memory
from sm.plugins.notify.rules import (
    BURST,
    CAUSE_S,
    DAY_S,
    GATHER_S,
    LONGEST_PAUSE_S,
    MINUTE_S,
    find_cause,
    is_given_up,
    note_failed,
    note_sent,
    plan,
)
from tests.plugins.notify.words import NOON, make_word

BROKEN = "needs a person: CI itself failed (step {}). sm ci rerun shop {}"


def broken(number: int, at: float = NOON, step: str = "build") -> HeldWord:
    command = f"sm ci rerun shop {number}"
    said = BROKEN.format(step, number)
    return make_word(number, said, NeedKind.CI, at, command=command)


def send_all(
    words: list[HeldWord], memory: Memory, now: float, quiet: str = ""
) -> tuple[int, Memory]:
    """How many messages there are at that moment, and what is remembered of them."""
    letters = plan(words, memory, quiet, now).letters
    for letter in letters:
        memory = note_sent(memory, letter, now)
    return len(letters), memory


def test_a_word_is_sent_when_others_have_had_a_moment_to_join_it() -> None:
    assert plan([make_word()], Memory(), "", NOON) == ((), NOON + GATHER_S)
    [letter] = plan([make_word()], Memory(), "", NOON + GATHER_S).letters
    assert letter.words == (make_word(),)
    assert GATHER_S <= 1.0, "a person is to hear of it within two seconds"


def test_equal_causes_are_one_message() -> None:
    words = [broken(7), broken(8), broken(12), make_word()]
    letters = plan(words, Memory(), "", NOON + 1).letters
    assert [letter.words for letter in letters] == [tuple(words[:3]), tuple(words[3:])]


@pytest.mark.parametrize(
    ("said", "other", "are_equal"),
    [
        ("waits 3 minutes for CI", "waits 14 minutes for CI", True),
        ("commit 3f9a2c1 of shop#7", "commit 77e01bb8 of shop#8", True),
        ("needs a person: which colour?", "needs a person: which size?", False),
    ],
)
def test_a_cause_has_no_numbers_and_no_names(said: str, other: str, are_equal: bool) -> None:
    causes = {find_cause(make_word(7, said)), find_cause(make_word(8, other))}
    assert (len(causes) == 1) is are_equal


def test_a_cause_is_the_same_in_another_project() -> None:
    other = make_word(8, "waits for the CI of cart", address="cart#8", command="")
    assert find_cause(make_word(7, "waits for the CI of shop")) == find_cause(other)


def test_a_kind_of_need_is_a_cause_of_its_own() -> None:
    failed = make_word(need=NeedKind.FAILED)
    assert find_cause(failed) != find_cause(make_word())


def test_what_comes_within_ten_minutes_of_its_cause_comes_together_behind_them() -> None:
    _, memory = send_all([broken(7)], Memory(), NOON + 1)
    later = [broken(8, NOON + 60), broken(9, NOON + 120)]
    assert plan(later, memory, "", NOON + 130) == ((), NOON + 1 + CAUSE_S)
    [letter] = plan(later, memory, "", NOON + 1 + CAUSE_S).letters
    assert letter.words == tuple(later)


def test_another_cause_does_not_wait() -> None:
    _, memory = send_all([broken(7)], Memory(), NOON + 1)
    assert plan([make_word(at=NOON + 5)], memory, "", NOON + 6).letters


def test_what_was_perhaps_told_waits_for_no_cause_and_joins_no_other() -> None:
    again = structs.replace(broken(8), name=f"x{AGAIN}")
    _, memory = send_all([broken(7)], Memory(), NOON + 1)
    letters = plan([again, broken(9)], memory, "", NOON + 2).letters
    assert [letter.words for letter in letters] == [(again,)]


def test_many_different_causes_are_one_message() -> None:
    words = [make_word(n, f"asks {chr(64 + n)}") for n in range(1, BURST + 2)]
    [letter] = plan(words, Memory(), "", NOON + 1).letters
    assert letter.words == tuple(words)
    assert len(plan(words[:BURST], Memory(), "", NOON + 1).letters) == BURST


def test_a_thousand_in_a_minute_are_few_messages() -> None:
    words = [make_word(n, f"asks {n:b}".replace("0", "o"), at=NOON + n * 0.06) for n in range(1000)]
    words = [structs.replace(w, sentence=w.sentence.replace("1", "i")) for w in words]
    memory, sent, told, now = Memory(), 0, 0, NOON
    while told < len(words):
        waiting = [word for word in words[told:] if word.at <= now]
        made = plan(waiting, memory, "", now)
        for letter in made.letters:
            memory, sent, told = note_sent(memory, letter, now), sent + 1, told + len(letter.words)
        now = min(max(made.next_at, now + 1.0), now + 5.0)
    assert sent <= 2 * BURST
    assert now < NOON + 3 * MINUTE_S


def test_quiet_hours_hold_what_is_not_urgent(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = "00:00-23:59"
    held, urgent = make_word(), make_word(8, "runs nowhere", NeedKind.POLL)
    made = plan([held, urgent], Memory(), quiet, NOON + 1)
    assert [letter.words for letter in made.letters] == [(urgent,)]
    assert NOON + 1 < made.next_at < NOON + DAY_S


def test_pauses_grow_and_have_a_limit() -> None:
    trouble, now, pauses = ChannelTrouble(), NOON, []
    for _ in range(10):
        trouble = note_failed(trouble, "500", now)
        pauses.append(trouble.again_at - now)
        assert plan([make_word()], Memory(trouble=trouble), "", now) == ((), trouble.again_at)
        now = trouble.again_at
    assert pauses[:4] == [5, 15, 45, 135]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_S
    assert trouble.since == NOON


def test_a_word_is_given_up_after_a_day_of_failing_tries() -> None:
    trouble = note_failed(ChannelTrouble(), "500", NOON)
    assert not is_given_up(make_word(), trouble, NOON + DAY_S - 1)
    assert is_given_up(make_word(), trouble, NOON + DAY_S)
    assert not is_given_up(make_word(at=NOON + 3600), trouble, NOON + DAY_S)
    old = make_word(at=NOON - 5 * DAY_S)
    assert not is_given_up(old, trouble, NOON + 60), "the machine was off; it was tried once"
    assert not is_given_up(old, ChannelTrouble(), NOON), "nothing was tried"


def test_a_clock_that_is_set_back_delays_nothing_for_long() -> None:
    """What was noted before is of a time to come."""
    trouble = note_failed(ChannelTrouble(), "500", NOON)
    letter = plan([broken(7)], Memory(), "", NOON + 1).letters[0]
    memory = structs.replace(note_sent(Memory(), letter, NOON + 1), trouble=trouble)
    words = [broken(8), make_word()]
    assert len(plan(words, memory, "", NOON - 10 * DAY_S).letters) == 2


def test_nothing_is_due_if_nothing_waits() -> None:
    failing = Memory(trouble=note_failed(ChannelTrouble(), "500", NOON))
    assert plan([], Memory(), "22:00-07:00", NOON) == ((), math.inf)
    assert plan([], failing, "", NOON) == ((), math.inf)
