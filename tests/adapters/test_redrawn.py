from __future__ import annotations

import pytest

from sm.adapters.redrawn import find_left_behind

SCREEN = ["one", "two", "three", "", "four", "five", "- busy"]


@pytest.mark.parametrize(
    ("after", "left"),
    [
        (SCREEN, []),
        ([*SCREEN[:-1], "/ busy"], []),
        (["three", "", "four", "five", "six", "seven", "| busy"], ["one", "two"]),
        (["other", "words", "", "", "", "", "- busy"], SCREEN),
        ([], SCREEN),
        ([""] * 7, SCREEN),
    ],
    ids=["unchanged", "spinner", "moved up", "replaced", "gone", "cleared"],
)
def test_what_left_the_screen(after: list[str], left: list[str]) -> None:
    assert find_left_behind(SCREEN, after) == left


def test_an_empty_screen_leaves_nothing() -> None:
    assert find_left_behind([], SCREEN) == []
    assert find_left_behind(["", ""], ["one", "two"]) == []


def test_a_short_text_that_goes_on_is_not_told_twice() -> None:
    assert find_left_behind(["one"], ["one", "two"]) == []
    assert find_left_behind(["one", "two"], ["one", "two", "three"]) == []


def test_turns_that_look_alike_are_told_apart() -> None:
    def turn(number: int) -> list[str]:
        return [f"> turn {number}", *(f"row {row}" for row in range(6)), ""]

    before = [*turn(2), *turn(3), *turn(4)[:2], "> "]
    after = [*turn(3), *turn(4), "", "* done", "> "]
    assert find_left_behind(before, after) == turn(2)


def test_a_picture_that_changes_at_the_top_moves_nothing() -> None:
    assert find_left_behind(["logo 1", *SCREEN], ["logo 2", *SCREEN]) == []
