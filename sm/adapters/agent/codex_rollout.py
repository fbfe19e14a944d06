"""Reads a Codex rollout: how much of the usage limits is used, and whether a turn has failed.

Measured with 0.171.0: each answer is followed by a `token_count` with `rate_limits`, which the
service tells by the headers `x-codex-primary-used-percent`, `-window-minutes` and `-reset-at`, and
the same of `secondary`. Earlier versions have `resets_in_seconds` in place of `resets_at`: of those
only a line that was written by hand was tried.

No hook tells of a failed turn. After its own tries (6 requests and 7 s at 401, 402 and 403; one
request at 429 and 400; 30 requests and 25 s at 500, 503 and 529) the rollout has a `task_complete`
with an `error`. Its `codex_error_info` is a word, or has the HTTP status within; Stop is not
called. The words that were not met stand in the program: which errors they are for is unproven.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sm.adapters.agent.transcript import read_tail
from sm.base.decoder import find_decoder
from sm.base.foreign import read_time

MARK = b'"rate_limits":{'
TAIL = 256 * 1024
"""Bytes of a rollout's end that are searched for the last answer, or the end of a turn."""
HOUR, DAY = 60, 24 * 60
"""Lengths in minutes."""
FIVE_HOURS, WEEK = (HOUR, DAY), (DAY + 1, 8 * DAY)
"""Lengths of a window that counts as one of these; any other window is passed over."""

BEGUN, ENDED = b'"type":"task_started"', b'"type":"task_complete"'
STATUS = "http_status_code"
OF_STATUS = {
    400: "invalid_request",
    401: "authentication_failed",
    402: "billing_error",
    403: "authentication_failed",
    404: "invalid_request",
    429: "rate_limit",
}
OF_WORD = {
    "unauthorized": "authentication_failed",
    "usage_limit_exceeded": "usage_limit",
    "server_overloaded": "overloaded",
    "bad_request": "invalid_request",
    "context_window_exceeded": "prompt_too_long",
}
REFUSED = "invalid_request_error"
"""Part of the words of a 400, which has no status beside it."""
OTHER = "server_error"


class Limit(Struct, frozen=True):
    """Used part of one limit, and when it starts again; None if unknown."""

    percent: float | None = None
    resets_at: float | None = None


class CodexLimits(Struct, frozen=True):
    """Limits of the two windows, as the last answer said."""

    five_hours: Limit = Limit()
    week: Limit = Limit()


class FailedTurn(Struct, frozen=True):
    """A turn that failed at `at` (seconds since 1970), with Codex's words for people.

    `error` is a name of the kind that Claude Code gives its errors.
    """

    turn: str
    error: str
    message: str
    at: float


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


class _Error(Struct):
    message: str = ""
    codex_error_info: Any = None


class _TurnPayload(Struct):
    type: str = ""
    turn_id: str = ""
    error: _Error | None = None


class _TurnLine(Struct):
    timestamp: str = ""
    payload: _TurnPayload | None = None


_limits_lines, _turn_lines = find_decoder(_LimitsLine), find_decoder(_TurnLine)
_NOT_WHOLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)
"""Errors of a line that is half a line, or has another shape."""


def read_limits(rollout: Path) -> CodexLimits | None:
    """Return what the last answer said; None if none has, or not near the end."""
    for line in reversed(read_tail(rollout, TAIL).split(b"\n")):
        if MARK in line:
            with contextlib.suppress(*_NOT_WHOLE):
                found = _limits_lines.decode(line)
                if found.payload and (said := found.payload.rate_limits):
                    return _sort(said, read_time(found.timestamp))
    return None


def _sort(said: _Said, at: float) -> CodexLimits:
    """Sort the two windows by their lengths, which alone tell them apart."""
    five_hours = week = Limit()
    for window in filter(None, (said.secondary, said.primary)):
        minutes, resets_at = window.window_minutes or 0, window.resets_at
        if resets_at is None and window.resets_in_seconds is not None:
            resets_at = at + window.resets_in_seconds
        limit = Limit(window.used_percent, resets_at)
        if FIVE_HOURS[0] <= minutes <= FIVE_HOURS[1]:
            five_hours = limit
        elif WEEK[0] <= minutes <= WEEK[1]:
            week = limit
    return CodexLimits(five_hours, week)


def read_failed_turn(rollout: Path, turn: str) -> FailedTurn | None:
    """Return the failure of the rollout's last turn; None unless that is `turn`, and has failed."""
    lines = reversed(read_tail(rollout, TAIL).split(b"\n"))
    last = next((line for line in lines if BEGUN in line or ENDED in line), b"")
    with contextlib.suppress(*_NOT_WHOLE):
        found = _turn_lines.decode(last)
        said = found.payload
        if said and said.type == "task_complete" and said.error and said.turn_id == turn != "":
            at = read_time(found.timestamp)
            return FailedTurn(turn, _name(said.error), said.error.message, at)
    return None


def _name(error: _Error) -> str:
    told = error.codex_error_info
    if isinstance(told, dict):
        # One key, such as `http_connection_failed`; the status is null if there was no answer.
        for inner in told.values():
            status = inner.get(STATUS) if isinstance(inner, dict) else None
            return OF_STATUS.get(status, OTHER) if isinstance(status, int) else OTHER
    if isinstance(told, str) and told in OF_WORD:
        return OF_WORD[told]
    return "invalid_request" if REFUSED in error.message else OTHER
