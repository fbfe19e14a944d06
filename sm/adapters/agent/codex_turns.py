"""Reads from a Codex rollout that a turn has failed, of which no hook tells.

Measured with 0.171.0: after its own tries (6 requests and 7 s at 401, 402 and 403; one request at
429 and 400; 30 requests and 25 s at 500, 503 and 529) the rollout has a `task_complete` with an
`error`. Its `codex_error_info` is a word, or has the HTTP status within; Stop is not called. The
words that were not met stand in the program: which errors they are for is unproven.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sm.adapters.agent.codex_limits import read_tail
from sm.base.decoding import find_decoder
from sm.base.foreign import read_time

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


class FailedTurn(Struct, frozen=True):
    """A turn that failed at `at` (seconds since 1970), with Codex's words for people.

    `error` is a name of the kind that Claude Code gives its errors.
    """

    turn: str
    error: str
    message: str
    at: float


class _Error(Struct):
    message: str = ""
    codex_error_info: Any = None


class _Payload(Struct):
    type: str = ""
    turn_id: str = ""
    error: _Error | None = None


class _Line(Struct):
    timestamp: str = ""
    payload: _Payload | None = None


_lines = find_decoder(_Line)


def read_failed_turn(rollout: Path, turn: str) -> FailedTurn | None:
    """Return the failure of the rollout's last turn; None unless that is `turn`, and has failed."""
    for line in reversed(read_tail(rollout).split(b"\n")):
        if BEGUN in line or ENDED in line:
            return _decode(line, turn)
    return None


def _decode(line: bytes, turn: str) -> FailedTurn | None:
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
        found = _lines.decode(line)
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
