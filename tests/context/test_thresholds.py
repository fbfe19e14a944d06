"""What is due at which percentage, in any order of readings."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.context.thresholds import (
    AGAIN_S,
    NOTHING,
    DueAction,
    FillFacts,
    FillReading,
    Flags,
    Levels,
    Notice,
    ThresholdDecision,
    decide,
    find_due,
    find_upcoming,
    mark_done,
    mark_in_vain,
    write_compaction,
    write_notice,
)

NOW = 1_767_000_000.0
FRESH = Flags()
LEVELS = Levels(warning=50, critical=65, cycle=85)
WARNING, CRITICAL, CYCLE = (
    DueAction(Notice.WARNING),
    DueAction(Notice.CRITICAL),
    DueAction(cycle=True),
)


def walk(*percentages: float, flags: Flags = FRESH, levels: Levels = LEVELS) -> list[DueAction]:
    """What is done at each of these readings."""
    done = []
    for percent in percentages:
        found = find_due(percent, levels, flags, NOW)
        flags = mark_done(flags, found)
        done.append(found)
    return done


@pytest.mark.parametrize(
    ("percentages", "done"),
    [
        ((0, 49, 49.9), [NOTHING, NOTHING, NOTHING]),
        ((50, 50, 51, 64), [WARNING, NOTHING, NOTHING, NOTHING]),
        ((65, 65, 70), [CRITICAL, NOTHING, NOTHING]),
        ((50, 65, 84), [WARNING, CRITICAL, NOTHING]),
        ((70, 55, 70), [CRITICAL, NOTHING, NOTHING]),
        ((85, 85, 85), [CYCLE, CRITICAL, NOTHING]),
        ((50, 65, 85, 90), [WARNING, CRITICAL, CYCLE, NOTHING]),
        ((10, 130, 130, 130), [NOTHING, CYCLE, CRITICAL, NOTHING]),
        ((90, 70, 55), [CYCLE, CRITICAL, NOTHING]),
    ],
)
def test_each_is_due_once(percentages: tuple[float, ...], done: list[DueAction]) -> None:
    assert walk(*percentages) == done


def test_a_lower_reading_re_arms_nothing() -> None:
    assert walk(50, 10, 0, 50, 65, 20, 65) == [
        *(WARNING, NOTHING, NOTHING, NOTHING),
        *(CRITICAL, NOTHING, NOTHING),
    ]


def test_after_a_compaction_a_percentage_above_the_warning_warns_again() -> None:
    assert walk(55, flags=Flags(warned=True, critical=True)) == [NOTHING]
    assert walk(55, flags=Flags()) == [WARNING]


@given(st.lists(st.floats(0, 200)), st.permutations([None, 50, 65, 85]))
def test_no_order_of_readings_tells_anything_twice(
    percentages: list[float], levels: list[float | None]
) -> None:
    done = walk(*percentages, levels=Levels(*levels[:3]))
    for one in (WARNING, CRITICAL, CYCLE):
        assert done.count(one) <= 1


@given(st.lists(st.integers(0, 120), min_size=1))
def test_the_upcoming_threshold_misses_nothing(percentages: list[int]) -> None:
    flags = Flags()
    for percent in percentages:
        found, ahead = find_due(percent, LEVELS, flags, NOW), find_upcoming(LEVELS, flags)
        while found:
            assert ahead is not None
            assert percent >= ahead
            flags = mark_done(flags, found)
            found, ahead = find_due(percent, LEVELS, flags, NOW), find_upcoming(LEVELS, flags)
    reached = find_upcoming(LEVELS, flags)
    # Nothing is called for twice at the same percentage.
    assert reached is None or percentages[-1] < reached


def test_a_cycle_of_which_nothing_comes_silences_no_notice() -> None:
    flags = mark_done(FRESH, CYCLE)
    assert (flags.warned, flags.critical, flags.cycled) == (False, False, True)
    assert find_due(86, LEVELS, flags, NOW) == CRITICAL


def failed(percent: float) -> Flags:
    """A context that was told all, and whose cycle came to nothing at that percentage."""
    return mark_in_vain(Flags(warned=True, critical=True, cycled=True), percent, NOW)


@pytest.mark.parametrize(
    ("percent", "later_s", "found"),
    [
        (86, 0, NOTHING),
        (88.9, AGAIN_S - 1, NOTHING),
        (89, 1, CYCLE),
        (86, AGAIN_S, CYCLE),
        (84, AGAIN_S, NOTHING),  # it has become less full
        (86, -3600, CYCLE),  # the clock was set back
    ],
)
def test_a_cycle_that_came_to_nothing_is_due_later_or_at_three_points_more(
    percent: float, later_s: float, found: DueAction
) -> None:
    assert find_due(percent, LEVELS, failed(86), NOW + later_s) == found


def test_a_cycle_that_begins_again_is_not_due_a_third_time_by_itself() -> None:
    flags = mark_done(failed(86), CYCLE)
    assert find_due(99, LEVELS, flags, NOW + AGAIN_S) == NOTHING
    assert find_upcoming(LEVELS, flags) is None


def test_the_status_line_calls_at_three_points_more() -> None:
    assert find_upcoming(LEVELS, failed(86)) == 89
    assert find_upcoming(LEVELS, failed(98)) is None
    assert find_upcoming(Levels(cycle=95), failed(86)) == 95


def test_what_is_switched_off_is_never_due() -> None:
    assert walk(99, levels=Levels()) == [NOTHING]
    assert find_upcoming(Levels(), Flags()) is None
    assert walk(99, levels=Levels(cycle=85)) == [CYCLE]
    assert find_upcoming(Levels(cycle=85), Flags()) == 85


def test_a_threshold_between_two_percentages_is_the_next_one() -> None:
    assert find_upcoming(Levels(cycle=85.5), Flags()) == 86
    assert find_upcoming(LEVELS, Flags()) == 50
    assert find_upcoming(LEVELS, Flags(warned=True)) == 65
    assert find_upcoming(LEVELS, Flags(critical=True)) == 85
    assert find_upcoming(LEVELS, Flags(warned=True, critical=True, cycled=True)) is None


def test_the_words_are_those_of_the_protocol() -> None:
    assert write_notice(Notice.WARNING, 50, 100_000) == (
        "[sm context] Context at 50% (100,000 tokens). "
        "Consider writing a handoff doc and running `sm handoff <path>`."
    )
    assert write_notice(Notice.CRITICAL, 65, 130_000) == (
        "[sm context] Context at 65% — critically high. "
        "Write your handoff doc NOW and run `sm handoff <path>`. Compaction is imminent."
    )
    assert write_compaction("ann") == "[sm context] Compaction fired for ann. Context was lost."


def test_what_is_not_known_is_not_said_and_more_than_all_is_all() -> None:
    assert write_notice(Notice.WARNING, 52.5, None).startswith(
        "[sm context] Context at 52.5%. Consider"
    )
    assert write_notice(Notice.CRITICAL, 130, None).startswith("[sm context] Context at 100% — ")


# One pass


def decided(
    percent: float | None = 10, *, read_at: float = NOW - 1, **known: Any
) -> ThresholdDecision:
    """What a pass does about context c1, whose flags are those of now unless `known` says else."""
    reading = FillReading(at=read_at, context="c1", percent=percent, tokens=1000)
    facts: dict[str, Any] = {
        "flags": Flags(context="c1", reset_at=NOW - 600),
        "levels": LEVELS,
        "context": "c1",
        "began_at": NOW - 600,
        "reading": reading,
    }
    return decide(FillFacts(now=NOW, looked_at=NOW - 2, **(facts | known)))


def test_a_pass_finds_what_is_due_and_when_to_be_woken() -> None:
    assert (decided(10).due, decided(10).wake_at) == (NOTHING, 50)
    found = decided(52)
    assert (found.due, found.percent, found.tokens, found.wake_at) == (WARNING, 52, 1000, 65)
    assert not found.is_new
    assert (decided(None).due, decided(None).wake_at) == (NOTHING, 50)


@pytest.mark.parametrize("known", [{"is_rotating": True}, {"is_replaceable": False}])
def test_nothing_is_due_and_nothing_wakes_where_no_cycle_can_begin(known: dict[str, bool]) -> None:
    assert (decided(90, **known).due, decided(90, **known).wake_at) == (NOTHING, None)


def test_a_cycle_that_begins_is_not_disturbed_by_the_status_line() -> None:
    assert (decided(90).due, decided(90).wake_at) == (CYCLE, None)


def test_a_compaction_begins_a_new_filling_for_which_the_reading_before_says_nothing() -> None:
    told = Flags(context="c1", warned=True, critical=True, reset_at=NOW - 600)
    after = Flags(context="c1", reset_at=NOW - 5)
    found = decided(70, read_at=NOW - 6, flags=told, compactions=(NOW - 9, NOW - 5))
    assert (found.is_new, found.flags, found.due, found.wake_at) == (True, after, NOTHING, 50)
    found = decided(70, read_at=NOW - 4, flags=told, compactions=(NOW - 9, NOW - 5))
    assert (found.is_new, found.flags, found.due) == (True, after, CRITICAL)
    assert decided(70, read_at=NOW - 4, flags=told, summed_up_at=NOW - 3).due == NOTHING


def test_behind_a_compaction_the_count_of_before_is_no_reading_and_another_is() -> None:
    known: dict[str, Any] = {"read_at": NOW - 2.8, "summed_up_at": NOW - 3}
    assert decided(99, **known, summed_up=1000).due == NOTHING
    assert decided(99, **known, summed_up=1001).due == CYCLE
    assert decided(99, **known, summed_up=None).due == CYCLE
    assert decided(99, summed_up=1000).due == CYCLE, "no compaction began this context"


def test_another_context_begins_a_new_filling() -> None:
    before = Flags(context="c0", warned=True, reset_at=NOW - 900)
    found = decided(52, flags=before, began_at=NOW - 30)
    assert (found.flags, found.due) == (Flags(context="c1", reset_at=NOW - 30), WARNING)


def test_a_launch_begins_a_new_filling_of_an_agent_without_hooks() -> None:
    def launched(at: float, read_at: float, flags: Flags) -> tuple[bool, DueAction]:
        reading = FillReading(at=read_at, percent=52)
        found = decided(flags=flags, context="", reading=reading, has_hooks=False, launched_at=at)
        return found.is_new, found.due

    told = Flags(warned=True, reset_at=NOW - 600)
    assert launched(NOW - 60, NOW - 1, told) == (True, WARNING)
    assert launched(NOW - 60, NOW - 59.5, told) == (True, NOTHING), "the agent before it said that"
    assert launched(NOW - 60, NOW - 59.5, Flags()) == (True, WARNING), "there was none before it"
    assert launched(NOW - 2.2, NOW - 1.5, told) == (True, WARNING), "this very pass has asked it"
    assert launched(NOW - 601, NOW - 1, told) == (False, NOTHING)


def test_what_waits_is_taken_back_unless_it_is_of_another_filling() -> None:
    told = Flags(context="c1", warned=True, reset_at=NOW - 600)
    off: dict[str, Any] = {
        "flags": told,
        "levels": Levels(),
        "retracts": frozenset({Notice.WARNING}),
    }
    assert decided(52, **off).retracts == {Notice.WARNING}
    assert decided(52, compactions=(NOW - 5,), **off).retracts == frozenset()


def test_a_cycle_that_came_to_nothing_calls_for_a_pass_when_it_may_begin_again() -> None:
    again = mark_in_vain(Flags(context="c1", cycled=True, reset_at=NOW - 600), 86, NOW)
    assert decided(70, flags=again).again_at == NOW + AGAIN_S
    assert decided(10).again_at == math.inf


def test_compactions_after_a_cycle_in_vain_begin_no_other_until_the_pause_is_over() -> None:
    flags = mark_in_vain(Flags(context="c1", cycled=True, reset_at=NOW - 600), 86, NOW - 5)
    for second in range(20, 0, -1):  # the window is so small that each turn sums it up
        found = decided(99, flags=flags, compactions=(NOW - second,), read_at=NOW)
        assert (found.is_new, found.due.cycle) == (True, False)
        assert found.again_at == NOW - 5 + AGAIN_S
        flags = found.flags
    assert find_due(99, LEVELS, flags, NOW - 5 + AGAIN_S).cycle
    reading = FillReading(at=NOW, context="c2", percent=99)
    other = decided(flags=flags, context="c2", began_at=NOW - 1, reading=reading)
    assert other.due.cycle, "a context that was cleared is another one"
