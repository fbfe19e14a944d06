"""Makes HTML of what is known; whatever others have written stays text.

Every value is escaped where it enters (autoescape). Before that, `finalize` clears every text of
what hides or turns around other text.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from msgspec import json

from sm.base.text import format_count, printable
from sm.plugins.page.board_page import tell_brief
from sm.plugins.page.markdown import fold, render_markdown
from sm.sessions.activity import Evidence, Proof
from sm.views.figures import list_headers
from sm.views.glossary import GLOSSARY, GROUPS
from sm.views.session_row import Mark, SessionRow
from sm.views.times import format_moment, tell_age

TEMPLATES = Path(__file__).parent / "templates"
FEW_CHOICES = 12
"""Choices of a question that are shown at once."""
LINKS = ("https://", "http://")


@functools.cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clear,
    )
    found.filters |= {
        "age": tell_age,
        "moment": lambda at: format_moment(at) if at else "",
        "safe_link": find_safe_link,
        "version": find_version,
        "count": format_count,
        "prove": _prove,
        "markdown": render_markdown,
        "fold": fold,
        "brief": tell_brief,
        "mean": lambda state: GLOSSARY[state].tells,
        "sentence": make_sentence,
    }
    found.globals |= {
        "marks": MARKS,
        "list_headers": list_headers,
        "groups_words": GROUPS,
        "FEW": FEW_CHOICES,
    }
    return found


def render(template: str, **values: Any) -> str:
    """Make HTML of a template with these values."""
    return _environment().get_template(template).render(**values)


class RowDrawer:
    """Makes the HTML of a row once, and keeps it as long as the board has that very row."""

    def __init__(self) -> None:
        """Draw nothing yet."""
        self._drawn: dict[str, tuple[SessionRow, Markup]] = {}

    def draw(self, row: SessionRow, group: str) -> Markup:
        """Return the row as an element of the list."""
        known = self._drawn.get(row.id)
        if known and known[0] is row:
            return known[1]
        parts: Any = _environment().get_template("parts.html").module
        drawn: Markup = parts.row_line(row, group)
        self._drawn[row.id] = row, drawn
        return drawn

    def forget_others(self, rows: Iterable[SessionRow]) -> None:
        """Forget sessions that are gone."""
        there = {row.id for row in rows}
        for ident in self._drawn.keys() - there:
            self._drawn.pop(ident, None)


def _clear(value: Any) -> Any:
    """Return a text without what a reader cannot see; our own HTML stays as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def find_safe_link(link: str) -> str:
    """Return the link if it leads to a page; '' for anything that a browser would run."""
    return link if link.lower().startswith(LINKS) else ""


ENDS = (".", "!", "?", ":", "…")


def make_sentence(words: str) -> str:
    """Return an error's words, in lower case for a terminal, as a sentence for a page."""
    first, blank, rest = words.partition(" ")
    begun = first.capitalize() if first.isalpha() and first.islower() else first
    return f"{begun}{blank}{rest}{'' if words.endswith(ENDS) else '.'}"


def find_version(*values: Any) -> str:
    """Return a version, which changes whenever what is shown of these values changes."""
    return f"{zlib.crc32(json.encode(values)):08x}"


def _prove(proof: Proof) -> str:
    return PROOFS[proof.kind].format(what=proof.what).rstrip(": ")


PROOFS = {
    Evidence.HOOK: "told by its hook",
    Evidence.SCREEN: "seen on its screen",
    Evidence.PROCESS: "process {what}",
    Evidence.RECORD: "on record: {what}",
    Evidence.PHASE: "it wrote {what}",
    Evidence.RECEIPT: "done: {what}",
    Evidence.COMMIT: "commit {what}",
    Evidence.ERROR: "not readable: {what}",
}
"""Words for the proof of a state."""


MARKS = {
    Mark.DONE: "done",
    Mark.NOW: "under way",
    Mark.BACK: "turned back",
    Mark.AHEAD: "not yet",
}
"""Words of a screen reader for a stop's mark."""
