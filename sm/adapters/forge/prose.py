"""Own words of the author of a Markdown text, without code, quotations and comments. Pure.

Templates explain in comments what may be written, and people quote what others have written:
neither is meant. The blocks are those of CommonMark 0.31 (4.4 indented code, 4.5 fenced code, 4.6
HTML, 5.1 quotations, 6.1 code spans), as far as a line is judged by itself and those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_QUOTATION = re.compile(r" {0,3}>")
_ITEM = re.compile(r"\s{0,40}(?:[-*+]|\d{1,9}[.)])\s")
_TICKS = re.compile(r"`+")


def list_prose(text: str) -> list[str]:
    """Return the lines in which the author says something."""
    return [_drop_code(line) for line in _lines(_drop_comments(text))]


def _drop_comments(text: str) -> str:
    """Drop HTML comments; one that is not closed goes on to the end, as it does on forges."""
    parts = []
    fence = ""
    hidden = False
    for line in text.splitlines():
        if not hidden:
            fence = _continue_fence(fence, line)
        shown, rest = [], line
        while not fence:
            before, mark, rest = rest.partition("-->" if hidden else "<!--")
            if not hidden:
                shown.append(before)
            if not mark:
                break
            hidden = not hidden
        parts.append(line if fence else "".join(shown))
    return "\n".join(parts)


def _continue_fence(fence: str, line: str) -> str:
    """Return the marks of the block of code that is open after this line, '' for none."""
    mark = _FENCE.match(line)
    if not fence:
        return mark[1] if mark else ""
    closes = mark and mark[1].startswith(fence) and not line[mark.end() :].strip()
    return "" if closes else fence


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that are neither in a block of code nor quoted."""
    fence, in_list, is_free, is_code = "", False, True, False
    for line in text.splitlines():
        was = fence
        fence = _continue_fence(fence, line)
        if was or fence:
            continue
        is_blank, is_indented = not line.strip(), line.startswith(("    ", "\t"))
        if _ITEM.match(line) and not (is_indented and is_free and not in_list):
            in_list = True
        elif not is_blank and not line.startswith((" ", "\t")) and is_free:
            in_list = False
        is_code = is_indented and not in_list and (is_free or is_code)
        if not is_code and not _QUOTATION.match(line):
            yield line
        is_free = is_blank or (is_code and is_free)


def _drop_code(line: str) -> str:
    """Drop the text between equal numbers of backticks."""
    runs = [(found.start(), found.end()) for found in _TICKS.finditer(line)]
    last = {end - start: start for start, end in runs}
    kept, at, opened = [], 0, 0
    for start, end in runs:
        length = end - start
        if opened:
            if length == opened:
                at, opened = end, 0
        elif last[length] > start:
            kept.append(line[at:start])
            opened = length
    return "".join(kept) + ("" if opened else line[at:])
