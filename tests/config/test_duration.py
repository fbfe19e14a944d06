from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.config.duration import Seconds, parse, show


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30s", 30),
        ("45m", 2700),
        ("3h", 10800),
        ("1d", 86400),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        (" 1.5h ", 5400),
        ("90", 90),
        (90, 90),
        (0.5, 0.5),
        (0, 0),
    ],
)
def test_durations_are_read(value: object, seconds: float) -> None:
    assert parse(value) == Seconds(seconds)


@pytest.mark.parametrize(
    "value",
    [
        *("", "soon", "3 hours", "1h-", "h", "-1", -1, True, None, [], {}, b"1s", "1h\n30"),
        *(float("nan"), float("inf"), 10**400, "9" * 400 + "h", "9" * 400),
    ],
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="Expected a duration"):
        parse(value)


@given(st.integers(0, 10**9) | st.floats(0, 10**6).map(lambda value: round(value, 3)))
def test_what_is_shown_is_read_again(seconds: float) -> None:
    assert parse(show(seconds)) == Seconds(seconds)
