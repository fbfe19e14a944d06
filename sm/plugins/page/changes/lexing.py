"""Program that colours code: lines of JSON in and out, until its input ends.

It is a process of its own because what a lexer reads can make it hang (Pygments had that more than
once: CVE-2021-20270, CVE-2021-27291), and nothing can stop it within a server.
"""

from __future__ import annotations

import sys

from msgspec import Struct

from sm.base.output import pass_on
from sm.helper.lines import decode_line, encode_line

LIMIT = 400_000
"""Greatest length of a line, in bytes."""


class CodeText(Struct, frozen=True):
    """Text of a file, or of a part of one, with the file's name."""

    name: str
    text: str


class Coloured(Struct, frozen=True):
    """Lines of that text as HTML; None if no lexer is for files of that name."""

    lines: list[str] | None


def colour(code: CodeText) -> Coloured:
    """Colour the code: classes as Pygments names them in its short names."""
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(code.name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return Coloured(None)
    lines = highlight(code.text, lexer, HtmlFormatter(nowrap=True)).split("\n")
    count = code.text.count("\n") + 1
    return Coloured(lines[:count] if len(lines) in (count, count + 1) else None)


def main() -> None:
    """Answer each line with one."""
    while line := sys.stdin.buffer.readline(LIMIT):
        pass_on(encode_line(colour(decode_line(line, CodeText))))


if __name__ == "__main__":
    main()
