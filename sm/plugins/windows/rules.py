"""Rules of a usage window: whether it holds an account's sessions, until when, in words. Pure."""

from __future__ import annotations

from msgspec import Struct

from sm.issues.rules.allowance import Allowance, LimitStage
from sm.sessions import failure
from sm.sessions.failure import FARTHEST_S, SLACK_S, Usage

HOUR_S, DAY_S = 3600.0, 86400.0
SAME_S = 600.0
"""Seconds within which two told resets are the same one, as clients round them."""


class WindowKind(Struct, frozen=True):
    """A window by its name; `lasts_s` is how long it can last at most."""

    name: str
    lasts_s: float


FIVE_HOURS, WEEK = WindowKind("five hours", 5 * HOUR_S), WindowKind("week", 7 * DAY_S)


class UsageWindow(Struct, frozen=True):
    """A usage window: how much is used, and when it begins again (seconds since 1970)."""

    kind: WindowKind
    percent: float
    resets_at: float

    @property
    def words(self) -> str:
        """Used part of the window, in words for people."""
        return f"{self.kind.name}: {self.percent:.0f} % used"


def list_windows(usage: Usage, seen_at: float, now: float) -> list[UsageWindow]:
    """Return the windows about which something is known that holds now; after a reset it is void.

    A reset that no client can mean was misread. Like one that was not told, it is assumed to be as
    late as it can be.
    """
    found = ((FIVE_HOURS, usage.five_hours), (WEEK, usage.seven_days))
    windows = (_find_window(kind, said, seen_at) for kind, said in found)
    return [one for one in windows if one and one.resets_at > now]


def _find_window(kind: WindowKind, said: failure.UsageLimit, seen_at: float) -> UsageWindow | None:
    if said.percent is None:
        return None
    latest = seen_at + kind.lasts_s
    told = said.resets_at
    plausible = told is not None and told <= seen_at + FARTHEST_S
    return UsageWindow(kind, said.percent, told if told is not None and plausible else latest)


NEAR_POINTS = 10
"""Points below the hold from which on a session is looked at while its turn runs."""


def judge(usage: Usage, seen_at: float, now: float, *, hold: int) -> Allowance | None:
    """Return what holds, or that it may soon; None if that is far away."""
    if held := find_hold(usage, seen_at, now, hold=hold):
        return held
    windows = list_windows(usage, seen_at, now)
    near = [one.words for one in windows if one.percent >= hold - NEAR_POINTS]
    return Allowance(LimitStage.FREE, matter="limits", shown=", ".join(near)) if near else None


def find_hold(usage: Usage, seen_at: float, now: float, *, hold: int) -> Allowance | None:
    """Return what holds from the percentage `hold` on, until the last reset; None if nothing does.

    For `sm` a window ends as late after its reset as a limit that was hit.
    """
    since = now - SLACK_S
    full = [one for one in list_windows(usage, seen_at, since) if one.percent >= hold]
    if not full:
        return None
    last = max(full, key=lambda one: one.resets_at)
    return Allowance(
        LimitStage.HELD,
        matter=f"limits:{last.kind.name}:{round(last.resets_at / SAME_S)}:{hold}",
        shown=", ".join(one.words for one in full),
        until=last.resets_at + SLACK_S,
    )
