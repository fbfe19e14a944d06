"""Ids of issues: numbers on a forge, such as 12, and texts of a tracker, such as `ENG-123`.

All that is read from outside goes through `read_issue`, and all that becomes a part of a path, of a
ref or of a session's name through `name_part`, so no other text gets there.
"""

from __future__ import annotations

import re

from sm.base.errors import UsageError

IssueId = int | str
"""Id of an issue: a number from 1 up, or a text such as `ENG-123`; 0 where there is none."""

NUMBER = r"[1-9][0-9]{0,8}"
KEY = r"[A-Z][A-Z0-9_]{0,30}"
"""What stands before the number of a tracker's id: a team, or a project."""
_NUMBER = re.compile(NUMBER)
_TEXT = re.compile(rf"({KEY})-({NUMBER})")
_PART = re.compile(rf"({KEY})_({NUMBER})")
AS_WRITTEN = rf"(?:{NUMBER}|[A-Za-z][A-Za-z0-9_]{{0,30}}-{NUMBER})"
"""Regular expression for an id as a person writes it."""


def spell(issue: IssueId) -> str:
    """Return what people call an issue: `#12`, `ENG-123`."""
    return issue if isinstance(issue, str) else f"#{issue}"


def read_issue(text: str) -> IssueId | None:
    """Return the id that a person means by `12`, `#12`, `ENG-123` or `eng-123`, or None."""
    if _NUMBER.fullmatch(number := text.removeprefix("#")):
        return int(number)
    return upper if text.isascii() and _TEXT.fullmatch(upper := text.upper()) else None


def is_id(issue: IssueId) -> bool:
    """Whether it is the id of an issue, spelled as everywhere."""
    return bool(_TEXT.fullmatch(issue)) if isinstance(issue, str) else issue > 0


def name_part(issue: IssueId) -> str:
    """Return the part that an id is of a path, a ref or a session's name: `12`, `ENG_123`.

    No two ids have one part. It has no dash, so it is what follows the last dash of a name.

    Raises:
        ValueError: it is no id.

    """
    if isinstance(issue, int):
        return str(issue)
    if not (found := _TEXT.fullmatch(issue)):
        raise ValueError(f"{issue[:50]!r} is no id of an issue")
    return f"{found[1]}_{found[2]}"


def read_part(text: str) -> IssueId | None:
    """Return the id that has this part, or None."""
    if _NUMBER.fullmatch(text):
        return int(text)
    return f"{found[1]}-{found[2]}" if (found := _PART.fullmatch(text)) else None


def rank(issue: IssueId) -> tuple[str, int]:
    """Return the place of an id among others, as people expect it: ENG-9 before ENG-10."""
    if isinstance(issue, int):
        return "", issue
    key, _, number = issue.rpartition("-")
    return key, int(number)


def check_pull(number: IssueId) -> int:
    """Return the number of a pull request; only issues may have another id.

    Raises:
        UsageError: it is such an id.

    """
    if isinstance(number, str):
        raise UsageError(f"'{number}' is an issue: a pull request has a number, such as 7")
    return number
