"""Handoff documents: how they are named, and which sections one has. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import NamedTuple

NAME = re.compile(r"handoff-[^\x00-\x1f\x7f\ud800-\udfff]*\.md")
"""Any name that an agent may have chosen in place of the one that it was told.

It has to be told by one line of text: control characters and bytes that are no text are out.
"""
ASKED_FOR = re.compile(r"handoff-\d{4}-\d\d-\d\d-\d\d-\d\d\.md", re.ASCII)

LINE_LIMIT = 400
"""Characters; what is longer is no heading."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HASHES = re.compile(r" {0,3}(#{1,6})(?!\S)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|(-+))\s*")
_BOLD = ("**", "__")
_BOLD_LEVEL = 7
_MARKS_ALONE = re.compile(r"[-*+_#>=~`|:.\[\]]*(?:\d+[.)])?")
_NUMBER = re.compile(r"(?:(?<!\d)\d++|[a-z])[.)]\s+")
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
    """Those of `sections` that the document lacks, or has nothing below their heading, in order.

    A heading is one of any level, or a line in bold. Case, numbers, marks and what follows the
    name do not matter: `## 3. NEXT STEPS (today):` has `Next Steps`. A word below it is enough,
    such as `None`, or behind a colon in it. A section without a letter in its name lacks nowhere.
    """
    names = {section: _words(section) for section in sections}
    filled = _filled(text, [name for name in names.values() if name])
    return tuple(section for section, name in names.items() if name and name not in filled)


def _filled(text: str, names: Sequence[str]) -> set[str]:
    """Those of `names` that are headings with something below them."""
    filled: set[str] = set()
    above: list[tuple[int, list[str]]] = []
    """The headings that the line is below of, with their levels."""
    for line in _lines(text):
        here = _named(line, names)
        if here or line.is_surely_heading:
            above = [(level, of_it) for level, of_it in above if level < line.level]
        if here:
            above.append((line.level, here))
        if not here or line.text.partition(":")[2].strip("*_ "):
            filled.update(name for _, of_it in above for name in of_it)
    return filled


def _named(line: _Line, names: Sequence[str]) -> list[str]:
    if not line.level:
        return []
    words = f"{_words(line.text)} "
    return [name for name in names if words.startswith(f"{name} ")]


class _Line(NamedTuple):
    """A line that is not blank; `level` is 0 where it is certainly no heading."""

    level: int
    text: str
    is_surely_heading: bool = False
    """One in bold, or with a rule below it, may as well be text."""


def _lines(text: str) -> Iterator[_Line]:
    fence = ""
    lines = text.removeprefix("\ufeff").splitlines()
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        if mark := _FENCE.match(line):
            fence = _fenced(fence, mark[1])
        elif fence and line.strip():
            yield _Line(0, line)
        elif not fence and (found := _line(line, below)):
            yield found


def _line(line: str, below: str) -> _Line | None:
    bare = line.strip()
    if len(bare) > LINE_LIMIT:
        return _Line(0, bare)
    if hashes := _HASHES.match(line):
        return _Line(len(hashes[1]), line[hashes.end() :].strip().rstrip("#").strip(), True)
    if _MARKS_ALONE.fullmatch("".join(bare.split())):
        return None
    if rule := _UNDERLINE.fullmatch(below):
        return _Line(2 if rule[1] else 1, bare)
    inner = bare.removesuffix(":").rstrip()
    if inner.startswith(_BOLD) and inner.endswith(_BOLD):
        return _Line(_BOLD_LEVEL, inner[2:-2])
    return _Line(0, bare)


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
