"""Compares moments on record with the clock, which may have been set back since."""

from __future__ import annotations

import time


def is_within(seconds: float, since: float) -> bool:
    """Whether no more than `seconds` have passed; a time to come says nothing.

    `since` is in seconds since 1970.
    """
    return 0 <= time.time() - since < seconds


def is_ahead(at: float, seconds: float) -> bool:
    """Whether `at` (seconds since 1970) is to come within `seconds`; what is later says nothing."""
    return 0 < at - time.time() <= seconds
