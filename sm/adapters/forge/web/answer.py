"""A forge's answer: its status, its headers, and its body as the shape that the caller expects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from sm.adapters.forge.web.errors import BadAnswerError
from sm.text import one_line

T = TypeVar("T")

NEXT = re.compile(r'<([^<>]{1,2000})>\s*;\s*rel="next"')
"""The page behind this one, in the header `Link` (RFC 8288)."""


class Said(Struct, frozen=True):
    """The words of a forge that refuses something; GitLab says what is wrong of each field."""

    message: str | list[object] | dict[str, object] = ""
    error: str | list[object] | dict[str, object] = ""
    error_description: str = ""
    errors: list[dict[str, object] | str] | None = None


class Answer(Struct, frozen=True):
    """What came back. The names of `headers` are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    what: str = ""

    @property
    def is_unchanged(self) -> bool:
        """Whether the caller knows the body already."""
        return self.status == 304

    @property
    def etag(self) -> str:
        """The validator for the next request, '' if there is none."""
        return self.headers.get("etag", "")

    @property
    def next_page(self) -> str:
        """The URL of the page behind this one, '' if it is the last."""
        found = NEXT.search(self.headers.get("link", ""))
        return found[1] if found else ""

    def read(self, shape: type[T]) -> T:
        """The body as `shape`.

        Raises:
            BadAnswerError: it is cut off, or has another shape.

        """
        try:
            return msgspec.json.decode(self.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            why = one_line(str(error), 200)
            raise BadAnswerError(f"the answer to {self.what} cannot be read: {why}") from error

    @property
    def said(self) -> str:
        """What the forge says of a refusal, in one line."""
        try:
            found = msgspec.json.decode(self.body, type=Said)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ""
        details = [_word(one) for one in (found.errors or [])[:5]]
        words = [*map(_phrase, (found.message, found.error)), found.error_description]
        return one_line(": ".join(filter(None, [*words, "; ".join(filter(None, details))])), 300)


def _phrase(said: object) -> str:
    """What is said of a whole, or of several fields."""
    if isinstance(said, dict):
        return "; ".join(f"{field} {_phrase(one)}" for field, one in list(said.items())[:5])
    if isinstance(said, list):
        return ", ".join(str(one) for one in said[:5])
    return str(said)


def _word(error: dict[str, object] | str) -> str:
    if isinstance(error, str):
        return error
    said = error.get("message") or " ".join(str(error.get(key, "")) for key in ("field", "code"))
    return str(said).strip()
