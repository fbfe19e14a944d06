"""What an agent has said, as HTML: its Markdown without what could lead or load elsewhere."""

from __future__ import annotations

import functools
import html
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from sm.base.text import printable

UNUSED = ("html_block", "html_inline", "image", "entity")
"""Parts of Markdown that are not for what an agent says: they would hide something, or load it."""


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 12})
    parser.enable(["table", "strikethrough"]).disable(UNUSED)
    parser.add_render_rule("link_open", _open_link)
    for cell in (
        "th_open",
        "td_open",
    ):  # which way a column leans is said by a style, which is refused
        parser.add_render_rule(cell, lambda self, tokens, at, *_: f"<{tokens[at].tag}>")
    return parser


def _open_link(_self: object, tokens: list[Any], at: int, *_: object) -> str:
    href = html.escape(str(tokens[at].attrGet("href") or ""))
    return f'<a href="{href}" rel="noreferrer noopener" target="_blank" title="{href}">'


def render_markdown(text: str) -> Markup:
    """Make HTML of what an agent has said; its links name where they lead."""
    made: str = _parser().render(printable(text))
    return Markup(made)  # noqa: S704 -- the parser escapes all that is not its own
