"""Answers in JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json
from starlette.responses import Response


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
