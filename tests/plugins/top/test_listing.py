"""The list: its order, the selected entry, and what is found in it."""

from __future__ import annotations

from sm.plugins.top.listing import Listing, make_entries
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow
from tests.plugins.top.rows import a_need, a_row


def a_list(*rows: SessionRow, needs: tuple[OpenNeed, ...] = ()) -> Listing:
    listing = Listing()
    update(listing, *rows, needs=needs)
    listing.arrange()
    return listing


def update(listing: Listing, *rows: SessionRow, needs: tuple[OpenNeed, ...] = ()) -> None:
    listing.update(make_entries(rows, needs), lambda name: f"{name} is merged")


def names(listing: Listing) -> list[str]:
    return [entry.name for entry in listing.shown]


def test_what_needs_a_person_comes_first_in_the_order_of_the_needs() -> None:
    poll, asked, older = a_need(), a_need(3), a_need(2)
    rows = a_row(1), a_row(2, need=older), a_row(3, need=asked)
    listing = a_list(*rows, needs=(poll, asked, older))
    assert names(listing) == ["shop", "shop#3", "shop#2", "shop#1"]
    assert [one.needs_person for one in listing.shown] == [True, True, True, False]


def test_the_order_stays_whatever_happens_until_the_person_asks() -> None:
    listing = a_list(a_row(1), a_row(2), a_row(3))
    asked = a_need(3)
    update(listing, a_row(4), a_row(3, need=asked), a_row(1), a_row(2), needs=(asked,))
    assert names(listing) == ["shop#1", "shop#2", "shop#3", "shop#4"]
    assert not listing.is_arranged
    listing.arrange()
    assert names(listing) == ["shop#3", "shop#4", "shop#1", "shop#2"]
    assert listing.is_arranged


def test_a_session_that_has_ended_stays_in_its_place_and_says_how() -> None:
    listing = a_list(a_row(1), a_row(2), a_row(3))
    update(listing, a_row(1), a_row(3))
    assert [one.over for one in listing.shown] == ["", "dev-shop-2 is merged", ""]
    update(listing, a_row(1), a_row(3))
    assert names(listing) == ["shop#1", "shop#2", "shop#3"]
    update(listing, a_row(1), a_row(2), a_row(3))  # its issue is worked on again
    assert [one.over for one in listing.shown] == ["", "", ""]
    update(listing, a_row(1), a_row(3))
    listing.arrange()
    assert names(listing) == ["shop#1", "shop#3"]


def test_a_need_that_is_no_sessions_is_settled_in_its_place() -> None:
    listing = a_list(a_row(1), needs=(a_need(),))
    update(listing, a_row(1))
    assert [(one.name, one.over) for one in listing.shown] == [("shop", "settled"), ("shop#1", "")]
    assert not any(one.needs_person for one in listing.shown)


def test_the_selected_session_stays_selected_when_data_change() -> None:
    listing = a_list(a_row(1), a_row(2), a_row(3))
    listing.move(1)
    asked = a_need(3)
    update(listing, a_row(0), a_row(3, need=asked), a_row(2, title="other"), needs=(asked,))
    assert listing.selected == "dev-shop-2"
    listing.arrange()
    assert listing.selected == "dev-shop-2"


def test_when_the_selected_one_goes_the_one_in_its_place_is_selected() -> None:
    listing = a_list(a_row(1), a_row(2), a_row(3))
    listing.move(1)
    update(listing, a_row(1), a_row(3))
    listing.arrange()
    assert listing.selected == "dev-shop-3"
    update(listing)
    listing.arrange()
    assert listing.current is None
    assert listing.selected == ""
    listing.move(1)
    assert not listing.find("x")


def test_moving_ends_at_the_ends() -> None:
    listing = a_list(a_row(1), a_row(2), a_row(3))
    for by, at in ((-1, 0), (1, 1), (10**9, 2), (1, 2), (-(10**9), 0)):
        listing.move(by)
        assert listing.position == at


def test_only_what_needs_me_leaves_the_selected_one_until_the_selection_moves() -> None:
    first, second = a_need(1), a_need(2)
    rows = a_row(1, need=first), a_row(2, need=second), a_row(3)
    listing = a_list(*rows, needs=(first, second))
    listing.switch_needs()
    assert names(listing) == ["shop#1", "shop#2"]
    update(listing, a_row(1), a_row(2, need=second), a_row(3), needs=(second,))
    assert names(listing) == ["shop#1", "shop#2"]
    assert listing.selected == "dev-shop-1"
    listing.move(1)
    assert names(listing) == ["shop#2"]
    listing.switch_needs()
    assert names(listing) == ["shop#1", "shop#2", "shop#3"]
    assert listing.selected == "dev-shop-2"


def test_only_what_needs_me_selects_one_that_does() -> None:
    first, second = a_need(1), a_need(3)
    rows = a_row(1, need=first), a_row(2), a_row(3, need=second), a_row(4)
    for start, wanted in ((1, 1), (2, 1), (3, 3), (4, 1)):
        listing = a_list(*rows, needs=(first, second))
        assert listing.find(f"shop#{start}", here=True)
        listing.switch_needs()
        assert names(listing) == ["shop#1", "shop#3"]
        assert listing.selected == f"dev-shop-{wanted}"
    listing = a_list(a_row(1), a_row(2))
    listing.switch_needs()
    assert names(listing) == ["shop#1"]
    assert listing.selected == "dev-shop-1"


def test_find_moves_the_selection_around_and_never_the_rows() -> None:
    listing = a_list(a_row(1, title="Red"), a_row(2, title="Blue"), a_row(3, words="red, too"))
    before = names(listing)
    for step, here, wanted in ((1, True, 1), (1, False, 3), (1, False, 1), (-1, False, 3)):
        assert listing.find("RED", step=step, here=here)
        assert listing.selected == f"dev-shop-{wanted}"
    assert not listing.find("green")
    assert listing.selected == "dev-shop-3"
    assert names(listing) == before
