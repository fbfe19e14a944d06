"""How the room of a table is divided, and what is cut off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sm.views.columns import COMMAND, NUMBER, Demand, allot, fit

demands = st.lists(
    st.builds(Demand, st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=12
)


@given(demands, st.integers(20, 250))
def test_no_column_has_more_than_it_needs_while_another_is_cut(
    asked: list[Demand], room: int
) -> None:
    widths = allot(asked, room)
    assert sum(widths) <= max(room, sum(one.need for one in asked if not one.share))
    cut = any(wide < one.need for wide, one in zip(widths, asked, strict=True))
    spare = sum(max(0, wide - one.need) for wide, one in zip(widths, asked, strict=True))
    assert not cut or spare <= len(asked)  # what a division leaves over


def test_scarce_room_goes_by_shares_and_the_rest_to_the_last_one() -> None:
    assert allot([Demand(5), Demand(40, 2), Demand(40, 3)], 55) == [5, 20, 30]
    assert allot([Demand(5), Demand(8, 2), Demand(10, 3)], 55) == [5, 8, 42]
    assert allot([Demand(30), Demand(3), Demand(40, 1)], 30) == [13, 3, 13]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("an answer: sm reply harb 7 TEXT", 31, "an answer: sm reply harb 7 TEXT"),
        ("an answer: sm reply harb 7 TEXT", 30, "an answer…"),
        ("the prompt: if it asks, sm attach harb 7", 39, "the prompt: if it asks…"),
        ("merged as pull request #1234", 27, "merged as pull request…"),
        ("Teach sm status to sort", 15, "Teach sm statu…"),
        ("größe größe", 8, "größe g…"),
        ("日本語日本語", 6, "日本…"),
        ("1234567", 3, "…"),
        ("words", 0, ""),
    ],
)
def test_nothing_of_a_command_or_a_number_is_cut_off(text: str, width: int, shown: str) -> None:
    assert fit(text, width) == shown


@given(st.text(st.sampled_from("ab 1#: 日"), max_size=40), st.integers(0, 30))
def test_what_is_cut_fits(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) <= max(
        width, cell_len(text) if width >= cell_len(text) else 0
    )


def test_the_patterns_find_our_own_words() -> None:
    assert COMMAND.search("a review: sm review harb#8 --approve")
    assert NUMBER.search("pull request #12")
