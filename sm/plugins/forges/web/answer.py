"""Answers of a forge: status, headers, and the body as the shape that the caller expects.

A page of a list that is too long for one answer is read in smaller ones: whoever may write there
can make a page that long, and would stop everything with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from sm.base.decoder import decode
from sm.base.foreign import NUMBER_LIMIT
from sm.base.text import one_line
from sm.plugins.forges.web.errors import BadAnswerError, BadShapeError, TooLongError

T = TypeVar("T")


class RefusalShape(Struct, frozen=True):
    """The words of a forge that refuses something; GitLab says what is wrong of each field."""

    message: str | list[object] | dict[str, object] = ""
    error: str | list[object] | dict[str, object] = ""
    error_description: str = ""
    errors: list[dict[str, object] | str] | None = None


class AnswerPage(Struct, Generic[T], frozen=True):
    """The entries of a page of a list that can be read, and how many there are in all.

    `bad` has a sentence for each of the others. `headers` are those of the last answer for it,
    None if that was too long to be read.
    """

    found: list[T]
    size: int
    bad: list[str] = []
    headers: Mapping[str, str] | None = None


def has_next(headers: Mapping[str, str]) -> bool:
    """Whether an answer with these headers has a page behind it (RFC 8288)."""
    return 'rel="next"' in headers.get("link", "")


class HttpAnswer(Struct, frozen=True):
    """A forge's answer. The names of `headers` are in small letters."""

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

    def read(self, shape: type[T]) -> T:
        """The body as `shape`.

        Raises:
            BadShapeError: it has another shape.
            BadAnswerError: it is cut off.

        """
        try:
            return decode(self.body, shape)
        except UNREADABLE as error:
            kind = BadShapeError if _is_whole(self.body) else BadAnswerError
            why = one_line(str(error), 200)
            raise kind(f"the answer to {self.what} cannot be read: {why}") from error

    def read_page(self, shape: type[T]) -> AnswerPage[T]:
        """The body as a list of `shape`; entries of another shape are passed over.

        Raises:
            BadAnswerError: it is cut off, or no list.

        """
        try:
            found = self.read(list[shape])  # type: ignore[valid-type]  # built from an argument
            return AnswerPage(found, len(found), headers=self.headers)
        except BadShapeError:
            entries, bad = self.read(list[Raw]), list[str]()
        found = []
        for one in entries:
            try:
                found.append(read_part(one, shape, f"of the answer to {self.what}"))
            except BadShapeError as error:
                bad.append(error.message)
        return AnswerPage(found, len(entries), bad, self.headers)

    @property
    def said(self) -> str:
        """The forge's words for a refusal, in one line."""
        try:
            found = decode(self.body, RefusalShape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ""
        details = [_word(one) for one in (found.errors or [])[:5]]
        words = [*map(_phrase, (found.message, found.error)), found.error_description]
        return one_line(": ".join(filter(None, [*words, "; ".join(filter(None, details))])), 300)


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _is_whole(body: bytes) -> bool:
    """Whether it is JSON to its end, whatever that says."""
    try:
        decode(body, Raw)
    except UNREADABLE:
        return False
    return True


class _Numbered(Struct, frozen=True):
    """The number of an entry, by which a person finds it; GitLab's is `iid`."""

    number: object = None
    iid: object = None


def read_part(data: Raw, shape: type[T], of: str) -> T:
    """One entry `of` an answer as `shape`.

    Raises:
        BadShapeError: it has another shape. The message names it by its number.

    """
    try:
        return decode(data, shape)
    except UNREADABLE as error:
        why = one_line(str(error), 200)
        raise BadShapeError(f"{_name_entry(data)} {of} is passed over: {why}") from error


def _name_entry(data: Raw) -> str:
    try:
        found = decode(data, _Numbered)
    except UNREADABLE:
        return "an entry"
    numbers = (one for one in (found.number, found.iid) if isinstance(one, int))
    number = next((one for one in numbers if 0 < one <= NUMBER_LIMIT), 0)
    return f"number {number}" if number else "an entry"


def _phrase(said: object) -> str:
    """Write what is said of a whole, or of several fields."""
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


SHARE = 10
"""A page that is too long is read in so many smaller ones, and each of those alike."""


def read_page(ask: Callable[[int, int], AnswerPage[T]], number: int, size: int) -> AnswerPage[T]:
    """Page `number`, counted from 1, of a list with `size` entries a page.

    `ask` returns the page with those two. An entry that is too long by itself is passed over.
    """
    try:
        return ask(number, size)
    except TooLongError as error:
        if size == 1:
            return AnswerPage([], 1, [f"an entry is passed over: {error.message}"])
    few = max(size // SHARE, 1)
    first = (number - 1) * (size // few) + 1
    parts = list[AnswerPage[T]]()
    for part in range(first, first + size // few):
        parts.append(read_page(ask, part, few))
        if not parts[-1].size:
            break
    return _join(parts)


def _join(parts: list[AnswerPage[T]]) -> AnswerPage[T]:
    return AnswerPage(
        [one for part in parts for one in part.found],
        sum(part.size for part in parts),
        [reason for part in parts for reason in part.bad],
        parts[-1].headers,
    )
