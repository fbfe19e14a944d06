"""Limits of a forge as its headers tell them, and how often it may be asked under these. Pure.

Moments come from the caller. Rate limits count in the forge's own time, so a wrong clock here must
not matter: a reset is kept as the distance from the answer's `Date`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from sm.base.foreign import read_number

SECONDARY_S = 60.0
"""Seconds to wait if the forge says "too often" and not for how long (GitHub's own advice)."""
LONGEST_S = 6 * 3600.0
"""A limit never holds longer, whatever a header says."""
LIMITED = (403, 429)
TOO_QUICKLY, HURRIED = 422, "submitted too quickly"
"""GitHub's refusal of a comment that comes too soon after others (cli/cli#4801)."""
CORE = "core"
"""The limit that nearly all requests count against."""
EASY = 0.5
"""Part of a limit; while more of it is left, observations are as frequent as configured."""
COST = 4
"""Requests that an observation may take when much has changed."""


class RateLimit(Struct, frozen=True):
    """Requests of a kind (`bucket`) that are left until `resets_at`, of `limit` in a period."""

    bucket: str
    limit: int
    left: int
    resets_at: float


def read_limit(headers: Mapping[str, str], now: float) -> RateLimit | None:
    """The limit that an answer tells of, in the caller's time; None if it tells of none."""
    most, left = (_number(headers, name) for name in ("limit", "remaining"))
    reset = _number(headers, "reset")
    if most is None or left is None or reset is None:
        return None
    bucket = headers.get("x-ratelimit-resource", CORE)[:40]
    resets_at = now + _bounded(reset - _date(headers, now))
    return RateLimit(bucket, most, left, resets_at)


def find_wait(status: int, headers: Mapping[str, str], said: str, now: float) -> float | None:
    """Seconds until the forge takes requests again; None if it has not refused for their number."""
    is_hurried = status == TOO_QUICKLY and HURRIED in said
    if status not in LIMITED and not is_hurried:
        return None
    if after := headers.get("retry-after", ""):
        return _bounded(_seconds(after, headers, now))
    limit = read_limit(headers, now)
    if limit is not None and limit.left == 0:
        return limit.resets_at - now
    is_limit = status == 429 or is_hurried or "rate limit" in said.lower()
    return SECONDARY_S if is_limit else None


def is_of_bucket(headers: Mapping[str, str], now: float) -> bool:
    """Whether a refusal for their number is of requests of one kind, and others are still taken.

    A bucket of requests is empty then. A limit for bursts, which GitHub calls secondary, leaves
    some in it, and is counted over all that an account sends: to go on with another interface
    makes it longer (docs.github.com, "Rate limits for the REST API": "secondary rate limits").
    """
    limit = read_limit(headers, now)
    return limit is not None and limit.bucket != CORE and limit.left == 0


def find_pause(
    limits: Iterable[RateLimit], reserve: int, blocked_until: float, now: float, sharers: int = 1
) -> float:
    """Seconds that two observations must be apart; 0 if the configured interval will do.

    So many `sharers` observe under these limits, each as often as this one. `reserve` requests are
    left to writes: with no more than these, observing waits for the reset.
    """
    blocked = max(blocked_until - now, 0.0)
    return max([blocked, *(_pause(limit, reserve, now, sharers) for limit in limits)])


def _pause(limit: RateLimit, reserve: int, now: float, sharers: int) -> float:
    until_reset = limit.resets_at - now
    if until_reset <= 0 or limit.left > limit.limit * EASY:
        return 0.0
    free = limit.left - min(reserve, int(limit.limit * EASY))
    if free <= 0:
        return until_reset
    return min(until_reset * COST * sharers / free, until_reset)


def _seconds(after: str, headers: Mapping[str, str], now: float) -> float:
    """`Retry-After` is a number of seconds or a date (RFC 9110, 10.2.3)."""
    if (number := read_number(after.strip())) is not None:
        return float(number)
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(after).timestamp() - _date(headers, now)
    except (ValueError, OverflowError):
        return SECONDARY_S


def _date(headers: Mapping[str, str], now: float) -> float:
    from email.utils import parsedate_to_datetime  # late: it is a third of what a pass imports

    try:
        return parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, OverflowError):
        return now


def read_date(headers: Mapping[str, str]) -> float | None:
    """The forge's own time of an answer, None if it does not say."""
    found = _date(headers, -1.0)
    return found if found >= 0 else None


def _number(headers: Mapping[str, str], name: str) -> int | None:
    """The header of GitHub, or of GitLab; `reset` is in seconds since the epoch."""
    text = headers.get(f"x-ratelimit-{name}") or headers.get(f"ratelimit-{name}", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_S)
