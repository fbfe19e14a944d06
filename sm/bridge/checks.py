"""What callers hand in, checked in one place for tools and shells: the messages are read by models.

Pure. Every error says what to do next, since whoever reads it can only call again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from sm.bridge.records import ID, Client, EntryType
from sm.errors import UsageError

Value = TypeVar("Value", bound=StrEnum)

CONTENT_LIMIT = 1_000_000
TITLE_LIMIT = 1_000
PROJECT_LIMIT = 200
"""Bytes of UTF-8."""


def handoff_id(given: object) -> str:
    """An id that may be looked up.

    Raises:
        UsageError: it cannot be one.

    """
    text = _given(given, "id").strip()
    if not ID.fullmatch(text):
        raise UsageError(
            f"{_quoted(given)} is not the id of a handoff: an id is 'hof_' and 21 characters, as "
            "create_handoff returned it; ask the person to paste it"
        )
    return text


def client(given: object) -> Client:
    """Who calls.

    Raises:
        UsageError: it is neither of the two.

    """
    try:
        return Client(given)  # type: ignore[arg-type]  # whatever else it is has no such value
    except ValueError as error:
        raise UsageError(
            f"unknown client {_quoted(given)}: 'code' stands for a coding client such as Claude "
            "Code, 'chat' for every other one"
        ) from error


def entry_type(given: object) -> EntryType:
    """What an entry is for.

    Raises:
        UsageError: there is no such type.

    """
    try:
        return EntryType(given)  # type: ignore[arg-type]  # whatever else it is has no such value
    except ValueError as error:
        raise UsageError(
            f"unknown type {_quoted(given)}: use one of {', '.join(EntryType)}"
        ) from error


def content(given: object) -> str:
    """The text of an entry, as it was given.

    Raises:
        UsageError: there is none, or too much of it.

    """
    return _text(given, "content", CONTENT_LIMIT, "put it into a file and name that, or split it")


def title(given: object) -> str:
    """The title of a handoff, on one line.

    Raises:
        UsageError: there is none, or too much of it.

    """
    return " ".join(_text(given, "title", TITLE_LIMIT, "a few words do").split())


def project(given: object) -> str | None:
    """The tag of a handoff, None for none.

    Raises:
        UsageError: it is no short text.

    """
    if given is None or given == "":
        return None
    return _text(given, "project", PROJECT_LIMIT, "it is a tag")


def issue(given: object) -> int | None:
    """The number of an issue, None for none.

    Raises:
        UsageError: it cannot be one.

    """
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given < 1 << 53:
        raise UsageError(f"{_quoted(given)} is not the number of an issue: give a whole number")
    return given


def _given(value: object, what: str) -> str:
    if value is None:
        raise UsageError(f"'{what}' is missing: give it")
    if not isinstance(value, str):
        raise UsageError(f"'{what}' is not a text: give it as a string")
    return value


def _text(value: object, what: str, limit: int, instead: str) -> str:
    given = _given(value, what)
    if not given.strip():
        raise UsageError(f"'{what}' is empty: say what the other client is to read")
    try:
        size = len(given.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"'{what}' is not valid Unicode: send it without surrogates") from error
    if size > limit:
        raise UsageError(f"'{what}' has {size:,} bytes, {limit:,} are allowed: {instead}")
    return given


def _quoted(given: object) -> str:
    return f"'{given!s:.60}'"
