"""Durations as people read them at a glance."""

from __future__ import annotations

import time
from itertools import pairwise

UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def format_age(seconds: float) -> str:
    """Format a duration in its largest fitting unit: `42s`, `3m`, `2h`; from two days on: `5d`."""
    whole = max(0, int(seconds))
    if 86400 <= whole < 2 * 86400:
        return f"{whole // 3600}h"
    unit, size = next(((u, s) for u, s in UNITS if whole >= s), UNITS[-1])
    return f"{whole // size}{unit}"


def tell_age(at: float) -> str:
    """Format how long ago that was, in seconds since 1970; '' for 0, which is not known."""
    return format_age(time.time() - at) if at else ""


def format_span(seconds: float) -> str:
    """Format a duration in its two largest units: `1m02s`, `3h07m`; below ten seconds: `0.4s`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f}s"
    whole = int(seconds)
    for (unit, size), (smaller, part) in pairwise(UNITS):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part:02d}{smaller}"
    return f"{whole}s"


def format_moment(at: float) -> str:
    """Format seconds since the epoch as the local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
