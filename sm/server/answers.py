"""Answers, always in JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json
from starlette.responses import Response

from sm.server.shapes import Error


class Answer(Response):
    """A value as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes of it."""
        return json.encode(content) + b"\n"


def success(value: Struct | dict[str, Any]) -> Answer:
    """What was asked for."""
    return Answer(value)


def failure(status: int, why: str, headers: dict[str, str] | None = None) -> Answer:
    """Why it is not given."""
    known = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return Answer(Error(why), status, known | (headers or {}))
