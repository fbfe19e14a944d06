"""Periods of days, weeks or months, so that a chart of any length can be read. Pure."""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum


class Period(StrEnum):
    """Period that a bar of a chart stands for."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


LONGEST = {Period.DAY: 45, Period.WEEK: 200}
"""Longest spans, in days, that are shown by day and by week; a longer one is shown by month."""
FARTHEST = 3660
"""Days that a chart goes back at most."""


def choose_period(first: str, last: str) -> Period:
    """Choose the period of the bars between two days, such as 2026-11-28."""
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    return next((one for one, most in LONGEST.items() if days <= most), Period.MONTH)


def name_period(day: str, period: Period) -> str:
    """Name the period that a day is in: the day itself, the Monday of its week, or its month."""
    if period is Period.MONTH:
        return day[:7]
    if period is Period.WEEK:
        found = date.fromisoformat(day)
        return (found - timedelta(found.weekday())).isoformat()
    return day


def list_periods(first: str, last: str, period: Period) -> list[str]:
    """List all periods between two days, in their order, without a gap."""
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    begin = max(begin, end - timedelta(FARTHEST))
    days = (begin + timedelta(number) for number in range((end - begin).days + 1))
    return list(dict.fromkeys(name_period(day.isoformat(), period) for day in days))
