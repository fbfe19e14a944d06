"""How far apart observations must be, so that a limit lasts until its reset. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sm.plugins.forges.web.limits import Limit

EASY = 0.5
"""With more than this part of a limit left, observations are as frequent as configured."""
COST = 4
"""Requests that an observation may take when much has changed."""


def find_pause(limits: Iterable[Limit], reserve: int, blocked_until: float, now: float) -> float:
    """Seconds that two observations must be apart; 0 if the configured interval will do.

    `reserve` requests are left to writes: with no more than these, observing waits for the reset.
    """
    blocked = max(blocked_until - now, 0.0)
    return max([blocked, *(_pause(limit, reserve, now) for limit in limits)])


def _pause(limit: Limit, reserve: int, now: float) -> float:
    until_reset = limit.resets_at - now
    if until_reset <= 0 or limit.left > limit.limit * EASY:
        return 0.0
    free = limit.left - min(reserve, int(limit.limit * EASY))
    if free <= 0:
        return until_reset
    return min(until_reset * COST / free, until_reset)
