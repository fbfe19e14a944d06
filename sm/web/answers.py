"""Answers in JSON, and the HTTP status of each error."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json
from starlette.responses import Response

from sm.base.errors import SmError, StateError, TemporaryError, UsageError
from sm.sessions.caller import CallerError


class Error(Struct, frozen=True):
    """Why a request was not carried out, for a person to read."""

    error: str


class Answer(Response):
    """A JSON answer."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the answer's bytes."""
        return json.encode(content) + b"\n"


def answer_success(value: Struct | dict[str, Any], status: int = 200) -> Answer:
    """Answer with this value."""
    return Answer(value, status)


def answer_failure(status: int, why: str, headers: dict[str, str] | None = None) -> Answer:
    """Answer with an error, and say why."""
    known = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return Answer(Error(why), status, known | (headers or {}))


class HttpError(SmError):
    """A refused request, with its own status."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the status beside the message."""
        super().__init__(message)
        self.status = status


class UnknownSessionError(SmError):
    """There is no such session."""


_STATUS: tuple[tuple[type[SmError], int], ...] = (
    (UnknownSessionError, 404),
    (CallerError, 403),
    (UsageError, 422),
    (TemporaryError, 503),
    (StateError, 500),
    (SmError, 409),
)


def choose_status(error: SmError) -> int:
    """Return the status for an error: 409 if the present state refuses the request."""
    if isinstance(error, HttpError):
        return error.status
    return next(status for kind, status in _STATUS if isinstance(error, kind))
