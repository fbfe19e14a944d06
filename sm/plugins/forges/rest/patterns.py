"""The patterns by which Forgejo and Gitea name required checks: those of `gobwas/glob`. Pure.

Beside what `fnmatch` has there are alternatives, `{a,b}`, and a backslash takes a character as it
is. No character separates: `*` goes over slashes (`services/pull/commit_status.go`).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

MOST, DEEP = 200, 20
"""Patterns that one with alternatives stands for, and how many it may have of those; one with more
is only a name.
"""
SPECIAL = "*?["


def matches(name: str, pattern: str) -> bool:
    """Whether the pattern, or the name that it is as well, means `name`."""
    return name == pattern or any(fnmatchcase(name, one) for one in expand(pattern))


@lru_cache(maxsize=1000)
def expand(pattern: str) -> tuple[str, ...]:
    """The patterns of `fnmatch` that it stands for; none if it is too long, or has no end."""
    if pattern.count("{") > DEEP:
        return ()
    found, rest = _read(pattern, "")
    return tuple(found) if not rest and len(found) <= MOST else ()


def _read(text: str, ends: str) -> tuple[list[str], str]:
    """What `text` stands for up to one of `ends`, and the rest from there."""
    found = [""]
    while text and text[0] not in ends:
        choices, text = _read_one(text)
        found = [begun + one for begun in found for one in choices][: MOST + 1]
    return found, text


def _read_one(text: str) -> tuple[list[str], str]:
    """What the first character begins, each way to read it, and the rest."""
    first, rest = text[0], text[1:]
    if first == "{":
        return _read_alternatives(rest)
    if first == "\\" and rest:
        return [f"[{rest[0]}]" if rest[0] in SPECIAL else rest[0]], rest[1:]
    if first == "[" and "]" in rest[1:]:
        end = text.index("]", 2) + 1
        return [text[:end]], text[end:]
    return [first], rest


def _read_alternatives(text: str) -> tuple[list[str], str]:
    found = list[str]()
    while True:
        one, text = _read(text, ",}")
        found += one
        if not text:  # it is never closed, which makes it no pattern at all
            return [""] * (MOST + 1), ""
        closes, text = text[0] == "}", text[1:]
        if closes:
            return found[: MOST + 1], text
