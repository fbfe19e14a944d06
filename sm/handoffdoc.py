"""Handoff documents: how they are named, and which sections one has. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime

NAME = re.compile(r"handoff-[^\x00-\x1f\x7f\ud800-\udfff]*\.md")
"""Any name that an agent may have chosen in place of the one that it was told.

It has to be told by one line of text: control characters and bytes that are no text are out.
"""
ASKED_FOR = re.compile(r"handoff-\d{4}-\d\d-\d\d-\d\d-\d\d\.md", re.ASCII)

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}#{1,6}(?:\s+(.*?))?\s*#*\s*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*")
_BOLD = re.compile(r"\s*(?:\*\*|__)(.+?)(?:\*\*|__)\s*:?\s*")
_NUMBER = re.compile(r"(?:\d+|[a-z])[.)]\s+")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def name(at: datetime) -> str:
    """The name of a document that is asked for at this local time."""
    return at.strftime("handoff-%Y-%m-%d-%H-%M.md")


def is_name(text: str) -> bool:
    """Whether a file of this name may be a handoff document."""
    return NAME.fullmatch(text) is not None


def is_asked_for(text: str) -> bool:
    """Whether it is a name of ours: any other may be that of a person's own file."""
    return ASKED_FOR.fullmatch(text) is not None


def missing(text: str, sections: Sequence[str]) -> tuple[str, ...]:
    """Those of `sections` that no heading of the document has, in their order.

    A heading is one of any level, or a line in bold. Case, numbers, marks and what follows the
    name do not matter: `## 3. NEXT STEPS (today):` has `Next Steps`.
    """
    found = [_words(heading) for heading in _headings(text)]
    return tuple(
        section
        for section in sections
        if not any(f"{heading} ".startswith(f"{_words(section)} ") for heading in found)
    )


def _headings(text: str) -> Iterator[str]:
    """Every heading outside code blocks."""
    fence, before = "", ""
    for line in text.removeprefix("\ufeff").splitlines():
        if mark := _FENCE.match(line):
            fence = _fenced(fence, mark[1])
        elif not fence:
            if found := _ATX.fullmatch(line) or _BOLD.fullmatch(line):
                yield found[1] or ""
            elif before.strip() and _UNDERLINE.fullmatch(line):
                yield before
        before = "" if fence else line


def _fenced(fence: str, mark: str) -> str:
    """The fence that is open after a line with this mark: only its own kind closes it."""
    if not fence:
        return mark
    return "" if mark.startswith(fence) else fence


def _words(heading: str) -> str:
    """What is compared: the words, without case, number and decoration."""
    text = unicodedata.normalize("NFKC", heading).casefold()
    text = _NUMBER.sub("", text.lstrip(" *_`#"), count=1)
    return _BETWEEN_WORDS.sub(" ", text).strip()
