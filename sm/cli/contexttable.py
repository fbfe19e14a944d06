"""Tables and lines about how full contexts are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sm.cli.table import LONGEST_AGE, VERY_WIDE, WIDE, Column, make_notes, make_table
from sm.views.contexts import Gauge
from sm.views.times import format_age

if TYPE_CHECKING:
    from rich.console import RenderableType


def draw_contexts(found: Sequence[Gauge]) -> RenderableType:
    """Draw the table for a terminal; notes on single sessions are below it, in full."""
    from rich.console import Group
    from rich.text import Text

    notes = ((one.name, Text(note, "yellow")) for one in found for note in one.notes)
    return Group(make_table(found, of=COLUMNS[:-1]), make_notes(notes))


def _percent(one: Gauge) -> str:
    return "" if one.percent is None else f"{one.percent:g}%"


def _replaced(one: Gauge) -> str:
    return f"{one.doing}, {format_age(one.since_s)}" if one.doing else ""


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def list_lines(one: Gauge) -> list[str]:
    """List all that is known of one session."""
    return [f"{label:<9} {text}" for label, text in _details(one)]


def _details(one: Gauge) -> Iterator[tuple[str, str]]:
    yield "name", one.name if one.name == one.id else f"{one.name} ({one.id})"
    if one.percent is not None and one.age_s is not None:
        tokens = f" ({_count(one.tokens)} of {_count(one.window)} tokens)" if one.window else ""
        yield "context", f"{one.percent:g}%{tokens}, seen {format_age(one.age_s)} ago"
    for label, text in (
        ("told", one.told),
        ("next", ", ".join(one.next)),
        ("replaced", _replaced(one)),
        ("handoff", one.last_handoff),
        ("own", ", ".join(one.own)),
    ):
        if text:
            yield label, text
    yield from (("note", text) for text in one.notes)


COLUMNS = (
    Column("Name", lambda one: one.name, share=2),
    Column("Context", _percent),
    Column("Tokens", lambda one: _count(one.tokens)),
    Column("Window", lambda one: _count(one.window), WIDE),
    Column(
        "Seen", lambda one: "" if one.age_s is None else format_age(one.age_s), least=LONGEST_AGE
    ),
    Column("Told", lambda one: one.told, coloured=True),
    Column("Next", lambda one: one.next[0] if one.next else ""),
    Column("Replaced", _replaced, share=3),
    Column("Last handoff", lambda one: one.last_handoff, VERY_WIDE, share=3),
    Column("Note", lambda one: "; ".join(one.notes)),
)
"""Columns of the table; a terminal has the notes below it."""
