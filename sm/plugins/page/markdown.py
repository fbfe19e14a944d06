"""Markdown of what an agent has said, as HTML: nothing of it runs, and nothing is loaded."""

from __future__ import annotations

import functools
import html
import re
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from sm.base.text import printable
from sm.sessions.question import drop_choices

UNUSED = ("html_block", "html_inline", "image", "entity")
"""Parts of Markdown that are not for what an agent says: they would hide something, or load it."""


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 12})
    parser.enable(["table", "strikethrough"]).disable(UNUSED)
    parser.add_render_rule("link_open", _open_link)
    # The alignment of a column would be a style, which the page's policy refuses.
    for cell in ("th_open", "td_open"):
        parser.add_render_rule(cell, lambda self, tokens, at, *_: f"<{tokens[at].tag}>")
    return parser


def _open_link(_self: object, tokens: list[Any], at: int, *_: object) -> str:
    href = html.escape(str(tokens[at].attrGet("href") or ""))
    return f'<a href="{href}" rel="noreferrer noopener" target="_blank" title="{href}">'


FENCE = re.compile(r" {0,3}(```|~~~)")
SHOWN = 12
"""Lines of a text that are shown at once."""


def fold(text: str, *, without_choices: bool = False) -> tuple[str, str]:
    """Split a long text into what comes before its end, and its end, by paragraphs.

    The end is what an agent asks. `without_choices` leaves out a list at the end, which is shown
    in another way.
    """
    if without_choices:
        text = drop_choices(text)
    paragraphs = _split(text)
    end = [paragraphs.pop()] if paragraphs else []
    while paragraphs and (_is_list(end) or _count(end) + 1 + len(paragraphs[-1]) <= SHOWN):
        end.insert(0, paragraphs.pop())
    return _join(paragraphs), _join(end)


def _is_list(paragraphs: list[list[str]]) -> bool:
    """Whether these are choices alone: what they belong to stands before them."""
    return not drop_choices(_join(paragraphs))


def _count(paragraphs: list[list[str]]) -> int:
    return sum(map(len, paragraphs)) + len(paragraphs) - 1


def _split(text: str) -> list[list[str]]:
    """Split at empty lines, but none within code."""
    found: list[list[str]] = [[]]
    fence = ""
    for line in text.splitlines():
        if (sign := FENCE.match(line)) and (not fence or sign[1] == fence):
            fence = "" if fence else sign[1]
        if line.strip() or fence:
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [lines for lines in found if lines]


def _join(paragraphs: list[list[str]]) -> str:
    return "\n\n".join("\n".join(lines) for lines in paragraphs)


def render_markdown(text: str) -> Markup:
    """Make HTML of what an agent has said; its links name where they lead."""
    made: str = _parser().render(printable(text))
    return Markup(made)  # noqa: S704 -- the parser escapes all that is not its own
