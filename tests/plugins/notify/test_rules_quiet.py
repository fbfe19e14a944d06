"""Quiet hours go by the clock on the wall, across midnight and when it is changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from sm.plugins.notify.rules import find_end, is_quiet

NIGHT = "22:00-07:00"


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clocks go forward on 2026-03-29 at two, and back on 2026-10-25 at three."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(fold=fold).timestamp()


@pytest.mark.parametrize(
    ("moment", "quiet"),
    [
        ("2026-06-01 21:59", False),
        ("2026-06-01 22:00", True),
        ("2026-06-02 00:00", True),
        ("2026-06-02 06:59:59", True),
        ("2026-06-02 07:00", False),
    ],
)
def test_a_night_goes_across_midnight(moment: str, quiet: bool) -> None:
    assert is_quiet(NIGHT, at(moment)) is quiet
    assert (find_end(NIGHT, at(moment)) > at(moment)) is quiet


def test_a_rest_at_noon_does_not() -> None:
    assert is_quiet("12:00-14:00", at("2026-06-01 13:00"))
    assert not is_quiet("12:00-14:00", at("2026-06-01 00:00"))
    assert find_end("12:00-14:00", at("2026-06-01 13:00")) == at("2026-06-01 14:00")
    assert not is_quiet("", at("2026-06-01 13:00"))
    assert not is_quiet("09:00-09:00", at("2026-06-01 09:00"))


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2026-06-01 23:00", "2026-06-02 07:00"),
        ("2026-06-02 03:00", "2026-06-02 07:00"),
        ("2026-03-28 23:00", "2026-03-29 07:00"),
        ("2026-10-24 23:00", "2026-10-25 07:00"),
        ("2026-12-31 23:00", "2027-01-01 07:00"),
    ],
)
def test_a_night_ends_at_seven_by_the_clock_on_the_wall(begin: str, end: str) -> None:
    assert find_end(NIGHT, at(begin)) == at(end)


def test_a_night_is_shorter_or_longer_when_the_clock_is_changed() -> None:
    hours = {
        day: (find_end(NIGHT, at(f"{day} 22:00")) - at(f"{day} 22:00")) / 3600
        for day in ("2026-03-28", "2026-06-01", "2026-10-24")
    }
    assert [*hours.values()] == [8, 9, 10]


def test_an_end_that_the_clock_skips_or_shows_twice_comes() -> None:
    skipped = find_end("22:00-02:30", at("2026-03-28 23:00"))
    assert not is_quiet("22:00-02:30", skipped)
    first = at("2026-10-25 02:10")
    again = at("2026-10-25 02:10", fold=1)
    assert again - first == 3600
    assert find_end("22:00-02:30", first) == first + 20 * 60
    assert find_end("22:00-02:30", again) == again + 20 * 60
