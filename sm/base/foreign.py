"""Values from outside with a meaning of their own: numbers, moments, names. Pure.

Anyone who may file an issue writes them, and a damaged file may hold anything. So a function of
this module reads each of them where it enters, and the code behind that door can count on its
bounds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sm.base.text import clean, one_line

NUMBER_LIMIT = 999_999_999
"""The highest number of an issue or a pull request."""
TITLE_LIMIT, NAME_LIMIT = 1000, 200
"""Characters of a title; of an author, a label, a branch and so on."""
LABELS, DEPENDENCIES = 100, 100
"""Labels, and dependencies, that one issue may have."""
SHOWN = 60
"""Characters of a wrong value that a message quotes."""

EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
JOINED = re.compile(f"(?<=[{EMOJI}\ufe0f])\u200d(?=[{EMOJI}])")
"""The joiner of two emoji (Unicode Technical Standard 51, 2.3); elsewhere it hides."""

NUMBER = re.compile(r"0*([0-9]{1,9})")
SECONDS = re.compile(r"[0-9]{1,15}(?:\.[0-9]*)?")
EARLIEST_S = datetime(2, 1, 1, tzinfo=UTC).timestamp()
LATEST_S = datetime(9998, 12, 31, tzinfo=UTC).timestamp()
"""Earliest and latest moment that can be written as a date in any time zone."""


def read_number(text: str) -> int | None:
    """Return the whole number up to `NUMBER_LIMIT` in plain digits; None for any other text."""
    found = NUMBER.fullmatch(text) if text.isascii() and text.isdigit() else None
    return int(found[1]) if found else None


def read_seconds(text: str) -> float | None:
    """Return a moment or duration as the shell writes it, not negative; None for another text."""
    return float(text) if SECONDS.fullmatch(text) else None


def read_time(text: str) -> float:
    """Return the seconds since the epoch of an ISO 8601 time; without a zone it is UTC.

    Raises:
        ValueError: it is no such time, or outside the years 2 to 9998.

    """
    moment = datetime.fromisoformat(text.strip())
    at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not EARLIEST_S <= at <= LATEST_S:
        raise ValueError(f"'{shorten(text)}' is too far away")
    return at


def format_utc(at: float) -> str:
    """Return `at` (seconds since the epoch) as forges take a time: to the second, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def bound_time(at: float) -> float:
    """Return `at`, or the nearest moment that can be written as a date."""
    return min(max(at, EARLIEST_S), LATEST_S)


def tidy(text: str) -> str:
    """Return `text` as a title or a name: one line, with nothing that a terminal would act upon."""
    line = " ".join(text.split())
    return line if line.isprintable() else " ".join(clean(line).split())


def tidy_name(text: str) -> str:
    """Return `text` as a name that is compared: nothing is left out that would make it another.

    Emoji may be joined to one.
    """
    if JOINED.sub("", text).isprintable():
        return " ".join(text.split())
    return f"{tidy(text)}\N{REPLACEMENT CHARACTER}"


def shorten(text: str) -> str:
    """Return the beginning of a wrong value, as a message quotes it."""
    return one_line(text, SHOWN)


def check_length(what: str, text: str, limit: int = NAME_LIMIT) -> str:
    """Return `text` if it is not too long.

    Raises:
        ValueError: it is longer than `limit` characters.

    """
    if len(text) > limit:
        raise ValueError(f"{what} has {len(text):,} characters, {limit:,} at most: shorten it")
    return text
