"""Quiet hours: whether it is quiet at a moment, and when it ends. By the clock on the wall."""

from __future__ import annotations

from datetime import datetime, timedelta

from sm.base.need import NeedKind

URGENT = frozenset({NeedKind.POLL, NeedKind.MACHINE, NeedKind.LOGIN})
"""What stops all work, so that a night would be lost. It is told at any hour."""


def is_quiet(hours: str, at: float) -> bool:
    """Whether it is quiet at that moment (seconds since 1970); `hours` as in 22:00-07:00."""
    if not hours:
        return False
    start, end = hours.split("-")
    clock = f"{datetime.fromtimestamp(at):%H:%M}"
    if start <= end:
        return start <= clock < end
    return clock >= start or clock < end


def find_end(hours: str, at: float) -> float:
    """Return when quiet hours end that hold at that moment; `at` if none do.

    When the clock goes back, a time can come twice: the next one is meant, and whoever waits for it
    looks again whether it is quiet. A time that the clock skips comes an hour later.
    """
    if not is_quiet(hours, at):
        return at
    hour, minute = map(int, hours.split("-")[1].split(":"))
    today = datetime.fromtimestamp(at).replace(hour=hour, minute=minute, second=0, microsecond=0)
    ends = [
        (today + timedelta(days=day)).replace(fold=fold).timestamp()
        for day in (0, 1)
        for fold in (0, 1)
    ]
    return next(end for end in ends if end > at)
