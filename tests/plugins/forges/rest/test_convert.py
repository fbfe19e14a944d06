"""The hidden mark of our comments: it comes back, and nothing else is taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.plugins.forges.rest.convert import BODY_LIMIT, add_marker, split_marker

TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r"))


@given(TEXT, st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_a_mark_comes_back_with_its_text(body: str, marker: str) -> None:
    found, mark = split_marker(add_marker(body, marker))
    if marker:
        assert (found, mark) == (body.rstrip(), marker)


def test_a_forge_may_change_line_ends_and_add_white_space() -> None:
    assert split_marker("Hello.\r\n\r\n<!-- sm:m1 -->\r\n ") == ("Hello.", "m1")
    assert split_marker("<!-- sm:m1 -->") == ("", "m1")


@pytest.mark.parametrize(
    "text", ["Hello.", "x <!-- sm:m1 -->", "<!-- sm:m1 --> x", "<!-- sm: -->", "<!-- sm:a b -->"]
)
def test_what_is_no_mark_stays_in_the_text(text: str) -> None:
    assert split_marker(text) == (text, "")


def test_a_text_that_is_too_long_is_cut_and_keeps_its_mark() -> None:
    long = add_marker("x" * 100_000, "m1")
    assert len(long) < BODY_LIMIT + 100
    assert split_marker(long)[1] == "m1"
    assert "too long" in long
