from __future__ import annotations

import pytest

from sm.plugins.page.numbers.periods import Period, choose_period, list_periods, name_period


@pytest.mark.parametrize(
    ("first", "period"),
    [
        ("2026-11-28", Period.DAY),
        ("2026-10-29", Period.DAY),
        ("2026-08-30", Period.WEEK),
        ("2025-11-28", Period.MONTH),
    ],
)
def test_a_longer_time_has_longer_bars(first: str, period: Period) -> None:
    assert choose_period(first, "2026-11-28") is period
    assert len(list_periods(first, "2026-11-28", period)) <= 45


def test_periods_follow_each_other_without_a_gap() -> None:
    assert list_periods("2026-02-27", "2026-03-02", Period.DAY) == [
        "2026-02-27",
        "2026-02-28",
        "2026-03-01",
        "2026-03-02",
    ]
    weeks = list_periods("2025-12-30", "2026-01-12", Period.WEEK)
    assert weeks == ["2025-12-29", "2026-01-05", "2026-01-12"]
    assert list_periods("2025-11-30", "2026-01-01", Period.MONTH) == [
        "2025-11",
        "2025-12",
        "2026-01",
    ]


@pytest.mark.parametrize("period", Period)
def test_each_day_is_in_a_period_that_is_listed(period: Period) -> None:
    listed = list_periods("2026-01-01", "2026-03-31", period)
    days = list_periods("2026-01-01", "2026-03-31", Period.DAY)
    assert list(dict.fromkeys(name_period(day, period) for day in days)) == listed


def test_a_clock_that_was_wrong_for_years_makes_no_chart_of_all_of_them() -> None:
    assert len(list_periods("1001-01-01", "2026-03-31", Period.DAY)) < 4000
