"""When a usage window holds, and until when."""

from __future__ import annotations

import pytest

from sm.issues.rules.allowance import LimitStage
from sm.plugins.windows.rules import DAY_S, HOUR_S, find_hold, list_windows
from sm.sessions.failure import SLACK_S, Usage, UsageLimit

NOW = 1795880000.0
SEEN = NOW - 60
SOON, LATER = NOW + HOUR_S, NOW + 3 * DAY_S


def use(
    five: float | None = None,
    week: float | None = None,
    five_at: float | None = SOON,
    week_at: float | None = LATER,
) -> Usage:
    return Usage(UsageLimit(five, five_at), UsageLimit(week, week_at))


@pytest.mark.parametrize(
    ("usage", "shown", "until"),
    [
        (use(), "", 0),
        (use(89.9, 42), "", 0),
        (use(90, 42), "five hours: 90 % used", SOON),
        (use(94.4), "five hours: 94 % used", SOON),
        (use(12, 90.5), "week: 90 % used", LATER),
        (use(94, 91), "five hours: 94 % used, week: 91 % used", LATER),
        (use(130, 42), "five hours: 130 % used", SOON),
        # A reset that is over, also if the clock has not passed the slack of the client's own limit
        (use(94, five_at=NOW - SLACK_S), "", 0),
        (use(94, five_at=NOW - SLACK_S + 1), "five hours: 94 % used", NOW - SLACK_S + 1),
        # One that was not told, or that none can have
        (use(94, five_at=None), "five hours: 94 % used", SEEN + 5 * HOUR_S),
        (use(94, five_at=NOW + 30 * DAY_S), "five hours: 94 % used", SEEN + 5 * HOUR_S),
    ],
)
def test_what_holds_until_when(usage: Usage, shown: str, until: float) -> None:
    found = find_hold(usage, SEEN, NOW, hold=90)
    if not shown:
        assert found is None
        return
    assert found
    assert (found.stage, found.shown) == (LimitStage.HELD, shown)
    assert found.until == until + SLACK_S


def test_figures_without_a_reset_end_with_the_longest_that_their_window_can_last() -> None:
    usage = use(94, five_at=None)
    assert find_hold(usage, NOW - 5 * HOUR_S + 1, NOW, hold=90)
    assert not find_hold(usage, NOW - 5 * HOUR_S - SLACK_S, NOW, hold=90)


def test_it_is_the_same_matter_until_the_reset() -> None:
    now, later, next_window = (
        find_hold(use(percent, five_at=resets_at), SEEN, NOW, hold=90)
        for percent, resets_at in ((91, SOON), (95, SOON + 2), (91, SOON + 5 * HOUR_S))
    )
    assert now
    assert later
    assert next_window
    assert now.matter == later.matter != next_window.matter


def test_it_ends_when_a_limit_that_was_hit_ends() -> None:
    """One reset, one moment: whether `sm` has held before the limit, or the limit was hit."""
    from sm.sessions.failure import judge

    usage = use(100)
    hit = judge("rate_limit", "", at=NOW, since=NOW, count=1, usage=usage, zones=lambda _: None)
    held = find_hold(usage, SEEN, NOW, hold=90)
    assert held
    assert held.until == hit.until


def test_of_a_window_that_is_over_nothing_is_shown() -> None:
    usage = use(94, 20, five_at=NOW - 1)
    assert [one.words for one in list_windows(usage, SEEN, NOW)] == ["week: 20 % used"]
