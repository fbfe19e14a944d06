"""What an agent CLI's words about a failed turn are taken to mean."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.sessions.failure import (
    FARTHEST_S,
    PATIENCE,
    REFUSALS,
    SLACK_S,
    Failure,
    FailureCause,
    Usage,
    UsageLimit,
    classify_error,
    judge,
    parse_reset_time,
    parse_usage,
)

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC).timestamp()
"""A Saturday."""
HOUR = 3600.0


def zones(name: str) -> tzinfo | None:
    """The machine's own zone is UTC here."""
    try:
        return ZoneInfo(name) if name else UTC
    except (KeyError, ValueError):
        return None


def at(*when: int, zone: str = "UTC") -> float:
    return datetime(*when, tzinfo=ZoneInfo(zone)).timestamp()  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("notice", "expected"),
    [
        ("5-hour limit reached ∙ resets 3pm", at(2026, 11, 21, 15)),
        ("5-hour limit reached ∙ resets 3:30 pm", at(2026, 11, 21, 15, 30)),
        (
            "You've hit your limit · resets 3pm (Europe/Berlin)",
            at(2026, 11, 21, 15, zone="Europe/Berlin"),
        ),
        (
            "Claude usage limit reached. Your limit will reset at 5pm (America/New_York).",
            at(2026, 11, 21, 17, zone="America/New_York"),
        ),
        ("You've hit your limit · resets 9am", at(2026, 11, 22, 9)),
        ("Your limit will reset at 12am.", at(2026, 11, 22, 0)),
        ("Claude AI usage limit reached|1795269600", 1795269600.0),
        ("Claude AI usage limit reached|1795269600000", 1795269600.0),
        ("Weekly limit reached ∙ resets Nov 24 at 9am", at(2026, 11, 24, 9)),
        ("resets 3pm (GMT+2)", at(2026, 11, 21, 13)),
        ("resets 8:30pm (GMT+5:30)", at(2026, 11, 21, 15)),
        ("resets 3pm (UTC-03:00)", at(2026, 11, 21, 18)),
        ("resets Nov 24, 9am (Asia/Tokyo)", at(2026, 11, 24, 9, zone="Asia/Tokyo")),
        ("resets Nov 24", at(2026, 11, 24, 0)),
        ("resets Monday 8:00", at(2026, 11, 23, 8)),
        ("resets Sat 11am", at(2026, 11, 28, 11)),
        ("resets at 14:05", at(2026, 11, 21, 14, 5)),
        ("resets\u00a03pm", at(2026, 11, 21, 15)),
        ("Please try again in 5 minutes.", NOON + 300),
        ("try again in 1h 30m", NOON + 5400),
        ("retry after 45 seconds", NOON + 45),
        ("resets in 2 days and 3 hours", NOON + 51 * HOUR),
        ("resets 3pm (Middle/Earth)", at(2026, 11, 21, 15)),
        # Said a moment after the time it names: that is now, not tomorrow.
        ("resets 12pm", None),
        ("API Error: Request rejected (429) · rate", None),
        ("resets 15", None),
        ("resets 25:00", None),
        ("resets Feb 30 at 9am", None),
        ("resets Nov 24 2031 at 9am", None),
        ("usage limit reached|1735689600", None),
        ("resets in 9 days", None),
        ("it resets whatever", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_time_in_a_notice(notice: str, expected: float | None) -> None:
    assert parse_reset_time(notice, NOON + 20, zones) == pytest.approx(
        expected if expected is None or not re.search(r"\bin |after", notice) else expected + 20
    )


def test_at_the_end_of_a_year_the_next_one_is_meant() -> None:
    eve = at(2026, 12, 30, 12)
    assert parse_reset_time("resets Jan 2 at 9am", eve, zones) == at(2027, 1, 2, 9)


NAMES = st.sampled_from(["", " (Europe/Berlin)", " (America/St_Johns)", " (Asia/Kolkata)", " (x)"])
WHEN = st.one_of(
    st.from_regex(r"[0-9]{1,2}(:[0-9]{2})? ?([ap]m)?", fullmatch=True),
    st.from_regex(r"(Mon|Dec 4 at|Jan 31,|Feb 29) [0-9]{1,2}(:[0-9]{2})?[ap]m", fullmatch=True),
    st.from_regex(r"in [0-9]{1,5} (minutes|h|days|seconds)", fullmatch=True),
    st.text(max_size=30),
)  # fmt: skip
MOMENTS = st.floats(at(2024, 1, 1), at(2040, 1, 1))


@given(moment=MOMENTS, when=WHEN, zone=NAMES)
def test_a_reset_is_never_past_and_never_farther_than_eight_days(
    moment: float, when: str, zone: str
) -> None:
    found = parse_reset_time(f"limit reached · resets {when}{zone}", moment, zones)
    assert found is None or moment < found <= moment + FARTHEST_S


@given(moment=MOMENTS, wait_min=st.integers(1, 1429), zone=st.sampled_from(["UTC", "Asia/Tokyo"]))
def test_a_time_of_day_is_read_back_as_it_was_written(
    moment: float, wait_min: int, zone: str
) -> None:
    reset = datetime.fromtimestamp(moment, ZoneInfo(zone)) + timedelta(minutes=wait_min)
    reset = reset.replace(second=0, microsecond=0)
    notice = f"resets {reset:%I:%M}{'pm' if reset.hour >= 12 else 'am'} ({zone})"
    found = parse_reset_time(notice, moment, zones)
    assert found == (reset.timestamp() if reset.timestamp() > moment else None)


@given(st.text())
def test_no_notice_and_no_usage_line_is_too_odd(text: str) -> None:
    parse_reset_time(text, NOON, zones)
    parse_usage(text)


def failure(error: str, notice: str = "", *, count: int = 1, usage: str = "") -> Failure:
    known = parse_usage(usage)
    return judge(error, notice, at=NOON, since=NOON, count=count, usage=known, zones=zones)


@pytest.mark.parametrize(
    ("error", "fault", "person"),
    [
        ("rate_limit", FailureCause.LIMIT, False),
        ("server_error", FailureCause.SERVICE, False),
        ("overloaded_error", FailureCause.SERVICE, False),
        ("unknown", FailureCause.SERVICE, False),
        ("max_output_tokens", FailureCause.SERVICE, False),
        ("authentication_failed", FailureCause.ACCESS, True),
        ("billing_error", FailureCause.ACCESS, True),
        ("invalid_request", FailureCause.CONVERSATION, False),
        ("model_not_found", FailureCause.REQUEST, True),
    ],
)
def test_what_waiting_does_not_help_is_for_a_person(
    error: str, fault: FailureCause, person: bool
) -> None:
    assert classify_error(error) is fault
    assert failure(error).for_person is person


def test_a_conversation_that_was_refused_twice_is_not_tried_again() -> None:
    assert not failure("invalid_request").is_of_conversation
    assert failure("invalid_request", count=REFUSALS).is_of_conversation
    assert failure("invalid_request", count=REFUSALS).for_person


def test_trouble_that_does_not_pass_is_for_a_person_in_the_end() -> None:
    assert not failure("server_error", count=PATIENCE - 1).lasting
    assert failure("server_error", count=PATIENCE).lasting
    assert not failure("server_error", count=PATIENCE).for_person


def test_pauses_grow_where_nobody_names_a_time() -> None:
    pauses = [failure("server_error", count=count).until - NOON for count in range(1, 9)]
    assert pauses == [60, 120, 240, 480, 960, 1800, 1800, 1800]


FIVE = f"{NOON} c1 80 200000 100 {NOON + HOUR:.0f} 40 {NOON + 90 * HOUR:.0f}"
BOTH = f"{NOON} c1 80 200000 100 {NOON + HOUR:.0f} 100 {NOON + 90 * HOUR:.0f}"
NONE = f"{NOON} c1 80 200000 93.5 {NOON + HOUR:.0f} 40 {NOON + 90 * HOUR:.0f}"


@pytest.mark.parametrize(
    ("notice", "usage", "hours"),
    [
        ("limit reached · resets 3pm", FIVE, 1),
        ("limit reached · resets 3pm", BOTH, 90),
        ("limit reached · resets 3pm", NONE, 3),
        ("5-hour limit reached · resets 3pm", NONE, 1),
        ("Weekly limit reached · resets 3pm", NONE, 90),
        ("limit reached · resets 3pm", f"{NOON} c1 - - - - - -", 3),
        ("limit reached · resets 3pm", f"{NOON} c1 80 2 100 {NOON - HOUR:.0f} - -", 3),
        ("limit reached · resets 3pm", "", 3),
    ],
)
def test_the_reported_limit_goes_before_the_notice(notice: str, usage: str, hours: int) -> None:
    assert failure("rate_limit", notice, usage=usage).until == NOON + hours * HOUR + SLACK_S


def test_trouble_of_the_service_is_not_mistaken_for_a_limit() -> None:
    assert failure("server_error", usage=FIVE).until == NOON + 60


def test_a_usage_line_is_read() -> None:
    assert parse_usage("1.5 c 8 200000 12 99 - -") == Usage(UsageLimit(12, 99), UsageLimit())
    assert parse_usage("1.5 c 8") == Usage()
    assert parse_usage("a b c d 1e9 nan - inf") == Usage()
