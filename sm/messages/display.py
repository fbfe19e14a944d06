"""Words a message for a person who does not see it typed out: what it is, and its text. Pure."""

from __future__ import annotations

import re
import unicodedata

from sm.base.text import INVISIBLE, one_line

WORDS = 60
"""Characters of a summary."""
TAGS = re.compile(r"[<>\\]")
MENTION = re.compile(r"(?<!\S)@+")
"""Mentions in a line, which an agent CLI may act upon or alter."""


def summarise(text: str) -> str:
    """Summarise `text` in a line that may be typed: its beginning, and the number of its lines."""
    lines = text.strip().splitlines() or [""]
    words = _first_words(lines[0].removeprefix("[sm] "))
    if len(lines) == 1:
        return words
    head, bracket = (words[:-1], ", ") if words.endswith(")") else (words, " (")
    return f"{head}{bracket}{len(lines)} lines)"


def _first_words(line: str) -> str:
    words = TAGS.sub("", one_line(line[: 4 * WORDS]))
    words = " ".join(MENTION.sub("", unicodedata.normalize("NFC", words)).split())
    if len(words) > WORDS:
        words = words[:WORDS].rpartition(" ")[0] or words[:WORDS]
        words = f"{words.rstrip(' .,:;')} …"
    return INVISIBLE.sub("", words).rstrip(" .:")  # a joiner that has lost what it joined
