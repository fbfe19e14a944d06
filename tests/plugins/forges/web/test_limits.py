"""Those who look at a forge by one account leave one another enough of its limit."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sm.plugins.forges.web.limits import COST, RateLimit, find_pause

HOUR_S = 3600.0
MOST, RESERVE = 5000, 500
POLL_S = 30.0


class Looker:
    """Looks at the forge every half a minute, or less often, as its limit says."""

    def __init__(self, begins_at: float, told: int) -> None:
        """It is told how many there are."""
        self.due_at, self.told, self.looks = begins_at, told, 0

    def look(self, now: float, left: int) -> None:
        """Look, and hear how many requests are left."""
        self.looks += 1
        limit = RateLimit("core", MOST, max(0, left), HOUR_S)
        self.due_at = now + max(POLL_S, find_pause([limit], RESERVE, 0.0, now, self.told))


def play_hour(lookers: list[Looker]) -> int:
    """Return how many requests are left when the limit is set back."""
    left = MOST
    while (one := min(lookers, key=lambda each: each.due_at)).due_at < HOUR_S:
        left -= COST
        one.look(one.due_at, left)
    return left


@given(st.lists(st.floats(0.0, POLL_S), min_size=2, max_size=80))
@example([0.0] * 50)
def test_hosts_that_know_of_one_another_leave_enough_for_writing(begins: list[float]) -> None:
    lookers = [Looker(begins_at, len(begins)) for begins_at in begins]
    assert play_hour(lookers) >= RESERVE
    looks = MOST / COST / len(begins)
    assert min(one.looks for one in lookers) >= min(HOUR_S / POLL_S, looks / 4), "all see something"


def test_hosts_that_know_of_none_use_up_what_is_left_for_writing() -> None:
    """What would be without it."""
    assert play_hour([Looker(0.0, 1) for _ in range(50)]) < RESERVE
