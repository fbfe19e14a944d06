"""Reads from a Codex rollout how much of the account's usage limits is used.

Measured with 0.171.0: each answer is followed by a `token_count` with `rate_limits`, which the
service tells by the headers `x-codex-primary-used-percent`, `-window-minutes` and `-reset-at`, and
the same of `secondary`. Earlier versions have `resets_in_seconds` in place of `resets_at`: of those
only a line that was written by hand was tried.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from sm.base.decoding import find_decoder
from sm.base.foreign import read_time

MARK = b'"rate_limits":{'
TAIL = 256 * 1024
"""Bytes of a rollout's end that are searched for the last answer, or the end of a turn."""
HOUR, DAY = 60, 24 * 60
"""Lengths in minutes."""
FIVE_HOURS, WEEK = (HOUR, DAY), (DAY + 1, 8 * DAY)
"""Lengths of a window that counts as one of these; any other window is passed over."""


class Limit(Struct, frozen=True):
    """Used part of one limit, and when it starts again; None if unknown."""

    percent: float | None = None
    resets_at: float | None = None


class CodexLimits(Struct, frozen=True):
    """Limits of the two windows, as the last answer said."""

    five_hours: Limit = Limit()
    week: Limit = Limit()


class _Window(Struct):
    used_percent: float | None = None
    window_minutes: int | None = None
    resets_at: float | None = None
    resets_in_seconds: float | None = None


class _Said(Struct):
    primary: _Window | None = None
    secondary: _Window | None = None


class _LimitsPayload(Struct):
    rate_limits: _Said | None = None


class _LimitsLine(Struct):
    timestamp: str = ""
    payload: _LimitsPayload | None = None


_lines = find_decoder(_LimitsLine)


def read_limits(rollout: Path) -> CodexLimits | None:
    """Return what the last answer said; None if none has, or not near the end."""
    for line in reversed(read_tail(rollout).split(b"\n")):
        if MARK in line and (found := _decode(line)):
            return found
    return None


def read_tail(path: Path) -> bytes:
    """Return the last `TAIL` bytes of a rollout; nothing if it cannot be read."""
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read(TAIL)
    except OSError:
        return b""


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a FIFO would wait


def _decode(line: bytes) -> CodexLimits | None:
    """Return the limits in a line; None if it is half a line, or says nothing of limits."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
        found = _lines.decode(line)
        if found.payload and (said := found.payload.rate_limits):
            return _sort(said, read_time(found.timestamp))
    return None


def _sort(said: _Said, at: float) -> CodexLimits:
    """Sort the two windows by their lengths, which alone tell them apart."""
    five_hours = week = Limit()
    for window in filter(None, (said.secondary, said.primary)):
        minutes = window.window_minutes or 0
        limit = Limit(window.used_percent, _find_reset(window, at))
        if FIVE_HOURS[0] <= minutes <= FIVE_HOURS[1]:
            five_hours = limit
        elif WEEK[0] <= minutes <= WEEK[1]:
            week = limit
    return CodexLimits(five_hours, week)


def _find_reset(window: _Window, at: float) -> float | None:
    if window.resets_at is not None:
        return window.resets_at
    return None if window.resets_in_seconds is None else at + window.resets_in_seconds
