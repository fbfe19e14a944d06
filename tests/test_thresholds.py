"""What is due at which percentage, in any order of readings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.thresholds import (
    NOTHING,
    Due,
    Flags,
    Levels,
    Notice,
    compacted,
    due,
    marked,
    text,
    upcoming,
)

FRESH = Flags()
LEVELS = Levels(warning=50, critical=65, cycle=85)
WARNING, CRITICAL, CYCLE = Due(Notice.WARNING), Due(Notice.CRITICAL), Due(cycle=True)


def walk(*percentages: float, flags: Flags = FRESH, levels: Levels = LEVELS) -> list[Due]:
    """What is done at each of these readings."""
    done = []
    for percent in percentages:
        found = due(percent, levels, flags)
        flags = marked(flags, found)
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
def test_each_is_due_once(percentages: tuple[float, ...], done: list[Due]) -> None:
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
        found, ahead = due(percent, LEVELS, flags), upcoming(LEVELS, flags)
        while found:
            assert ahead is not None
            assert percent >= ahead
            flags = marked(flags, found)
            found, ahead = due(percent, LEVELS, flags), upcoming(LEVELS, flags)
    reached = upcoming(LEVELS, flags)
    # Nothing is called for twice at the same percentage.
    assert reached is None or percentages[-1] < reached


def test_a_cycle_of_which_nothing_comes_silences_no_notice() -> None:
    flags = marked(FRESH, CYCLE)
    assert (flags.warned, flags.critical, flags.cycled) == (False, False, True)
    assert due(86, LEVELS, flags) == CRITICAL


def test_what_is_switched_off_is_never_due() -> None:
    assert walk(99, levels=Levels()) == [NOTHING]
    assert upcoming(Levels(), Flags()) is None
    assert walk(99, levels=Levels(cycle=85)) == [CYCLE]
    assert upcoming(Levels(cycle=85), Flags()) == 85


def test_a_threshold_between_two_percentages_is_the_next_one() -> None:
    assert upcoming(Levels(cycle=85.5), Flags()) == 86
    assert upcoming(LEVELS, Flags()) == 50
    assert upcoming(LEVELS, Flags(warned=True)) == 65
    assert upcoming(LEVELS, Flags(critical=True)) == 85
    assert upcoming(LEVELS, Flags(warned=True, critical=True, cycled=True)) is None


def test_the_words_are_those_of_the_protocol() -> None:
    assert text(Notice.WARNING, 50, 100_000) == (
        "[sm context] Context at 50% (100,000 tokens). "
        "Consider writing a handoff doc and running `sm handoff <path>`."
    )
    assert text(Notice.CRITICAL, 65, 130_000) == (
        "[sm context] Context at 65% — critically high. "
        "Write your handoff doc NOW and run `sm handoff <path>`. Compaction is imminent."
    )
    assert compacted("ann") == "[sm context] Compaction fired for ann. Context was lost."


def test_what_is_not_known_is_not_said_and_more_than_all_is_all() -> None:
    assert text(Notice.WARNING, 52.5, None).startswith("[sm context] Context at 52.5%. Consider")
    assert text(Notice.CRITICAL, 130, None).startswith("[sm context] Context at 100% — ")
