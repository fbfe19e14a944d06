"""Checks what callers pass, in one place for tools and shells. Models read the messages.

Pure. Every error says what to do next, because a model can only call again.
"""

from __future__ import annotations

from sm.base.errors import UsageError
from sm.base.issue_id import IssueId, read_issue
from sm.plugins.chat.threads.records import EntryType, HandoffClient

CONTENT_LIMIT = 1_000_000
TITLE_LIMIT = 1_000
PROJECT_LIMIT = 200
"""Bytes of UTF-8."""
ID_LIMIT = 200
"""Characters. Those of sm have 25; a program whose database sm uses makes them as it likes."""


def check_handoff_id(given: object) -> str:
    """Return `given` as an id to look up.

    Raises:
        UsageError: it cannot be one.

    """
    text = _check_given(given, "id").strip()
    if not text or len(text) > ID_LIMIT or not text.isprintable():
        raise UsageError(
            f"{_quote(given)} is not the id of a handoff: an id is short and on one line, as "
            "create_handoff returned it; ask the person to paste it"
        )
    return text


def check_client(given: object) -> HandoffClient:
    """Return `given` as the client that calls.

    Raises:
        UsageError: it is not one of the two clients.

    """
    try:
        return HandoffClient(given)  # type: ignore[arg-type]  # whatever else it is has no such value
    except ValueError as error:
        raise UsageError(
            f"unknown client {_quote(given)}: 'code' stands for a coding client such as Claude "
            "Code, 'chat' for every other one"
        ) from error


def check_entry_type(given: object) -> EntryType:
    """Return `given` as the type of an entry.

    Raises:
        UsageError: there is no such type.

    """
    try:
        return EntryType(given)  # type: ignore[arg-type]  # whatever else it is has no such value
    except ValueError as error:
        raise UsageError(
            f"unknown type {_quote(given)}: use one of {', '.join(EntryType)}"
        ) from error


def check_content(given: object) -> str:
    """Return `given` as the text of an entry, unchanged.

    Raises:
        UsageError: there is none, or too much of it.

    """
    return _text(given, "content", CONTENT_LIMIT, "put it into a file and name that, or split it")


def check_title(given: object) -> str:
    """Return `given` as the title of a thread, on one line.

    Raises:
        UsageError: there is none, or too much of it.

    """
    return " ".join(_text(given, "title", TITLE_LIMIT, "a few words do").split())


def check_project(given: object) -> str | None:
    """Return `given` as the tag of a thread, or None.

    Raises:
        UsageError: it is no short text.

    """
    if given is None or given == "":
        return None
    return _text(given, "project", PROJECT_LIMIT, "it is a tag")


def check_issue(given: object) -> IssueId | None:
    """Return `given` as the id of an issue, or None.

    Raises:
        UsageError: it cannot be one.

    """
    if given is None:
        return None
    if isinstance(given, str) and isinstance(found := read_issue(given), str):
        return found
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given < 1 << 53:
        raise UsageError(f"{_quote(given)} is not the number of an issue: give a whole number")
    return given


def _check_given(value: object, what: str) -> str:
    if value is None:
        raise UsageError(f"'{what}' is missing: give it")
    if not isinstance(value, str):
        raise UsageError(f"'{what}' is not a text: give it as a string")
    return value


def _text(value: object, what: str, limit: int, instead: str) -> str:
    given = _check_given(value, what)
    if not given.strip():
        raise UsageError(f"'{what}' is empty: say what the other client is to read")
    try:
        size = len(given.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"'{what}' is not valid Unicode: send it without surrogates") from error
    if size > limit:
        raise UsageError(f"'{what}' has {size:,} bytes, {limit:,} are allowed: {instead}")
    return given


def _quote(given: object) -> str:
    return f"'{given!s:.60}'"
