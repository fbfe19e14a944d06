"""Pages of a list: what is too long for one answer is read in smaller ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.plugins.forges.web.answer import AnswerPage, has_next, read_page
from sm.plugins.forges.web.errors import TooLongError

LIMIT = 16


class Listing:
    """A list whose entries have these lengths; an answer may have `LIMIT` at most."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths
        self.asked: list[tuple[int, int]] = []

    def ask(self, number: int, size: int) -> AnswerPage[int]:
        self.asked.append((number, size))
        start = (number - 1) * size
        places = list(range(start, min(start + size, len(self.lengths))))
        if sum(self.lengths[place] for place in places) > LIMIT:
            raise TooLongError("too long")
        return AnswerPage(places, len(places), headers={})


@given(st.lists(st.sampled_from([0, 1, 3, 8, 17]), max_size=130), st.sampled_from([50, 100]))
def test_every_entry_that_is_not_too_long_by_itself_is_read_once(
    lengths: list[int], size: int
) -> None:
    listing = Listing(lengths)
    pages = [read_page(listing.ask, number, size) for number in (1, 2, 3)]
    found = [place for page in pages for place in page.found]
    assert found == [place for place, length in enumerate(lengths) if length <= LIMIT]
    assert sum(page.size for page in pages) == len(lengths)
    assert sum(len(page.bad) for page in pages) == sum(length > LIMIT for length in lengths)


def test_a_page_that_is_short_enough_takes_one_request() -> None:
    listing = Listing([0] * 100)
    assert read_page(listing.ask, 1, 100).headers == {}
    assert listing.asked == [(1, 100)]


def test_only_what_is_too_long_is_read_in_small_pages() -> None:
    listing = Listing([0] * 95 + [9, 9] + [0] * 3)
    assert len(read_page(listing.ask, 1, 100).found) == 100
    assert len(listing.asked) == 1 + 10 + 10


def test_after_an_entry_that_is_too_long_nobody_knows_whether_there_are_more() -> None:
    page = read_page(Listing([0, 17]).ask, 2, 1)
    assert (page.size, page.headers) == (1, None)


@pytest.mark.parametrize(
    ("link", "is_there"),
    [
        ('<https://forge.example.com/list?page=2>; rel="next"', True),
        ('<https://a/?page=1>; rel="prev", <https://a/?page=3>; rel="next"', True),
        ('<https://a/?page=1>; rel="first"', False),
        ("", False),
    ],
)
def test_the_header_tells_whether_a_page_is_behind(link: str, is_there: bool) -> None:
    assert has_next({"link": link} if link else {}) is is_there
