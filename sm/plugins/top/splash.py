"""First picture of the screen, which is there before Textual is loaded.

Textual draws the same a moment later, so nothing jumps. Keys that are pressed meanwhile wait.
"""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.style import Style

from sm.base.output import pass_on
from sm.base.text import printable
from sm.plugins.top import lines
from sm.plugins.top.feed import Seen
from sm.plugins.top.lines import Line, Look
from sm.plugins.top.listing import Listing, make_entries
from sm.views.figures import list_headers

BEGIN, END = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J", "\x1b[?25h\x1b[?1049l"
"""Codes to the terminal's other screen, without a cursor, and back."""


def draw(seen: Seen, width: int, height: int, look: Look) -> list[Line]:
    """Draw the lines of the screen, from top to bottom."""
    listing = Listing()
    listing.update(make_entries(seen.rows, seen.needs), lambda _: "")
    entries = listing.entries
    above: list[Line] = []
    if height >= lines.SUMMARY_FROM:
        above.append(lines.draw_summary(entries, only_needs=False, is_arranged=True))
    notice = lines.draw_notice(seen.needs, seen.paused, seen.problems)
    if notice and height >= lines.NOTICE_FROM:
        above.append(notice)
    below: list[Line] = []
    if height >= lines.DETAIL_FROM:
        below += lines.draw_detail(listing.current, look)
    if height >= lines.KEYS_FROM:
        below.append(lines.draw_keys(lines.KEYS, width))
    room = height - len(above) - len(below)
    headers = list_headers() if any(one.row and one.row.figures for one in entries) else {}
    layout = lines.lay_out(entries, width, look, headers)
    head = [lines.draw_header(layout)] if room > lines.HEADER_FROM else []
    listed = [
        lines.draw_entry(one, layout, look, selected=one.key == listing.selected)
        for one in entries[: room - len(head)]
    ]
    rest: list[Line] = [()] * (room - len(head) - len(listed))
    return [*above, *head, *listed, *rest, *below]


def spell(drawn: Sequence[Line], width: int, *, colours: bool) -> str:
    """Spell the lines for a terminal, each in its row."""
    return "".join(
        f"\x1b[{row};1H{_spell_line(line, width, colours=colours)}"
        for row, line in enumerate(drawn, 1)
    )


def _spell_line(line: Line, width: int, *, colours: bool) -> str:
    found = []
    for text, words in lines.pad(line, width):
        style = Style.parse(words)
        shown = printable(text).replace("\n", " ")
        found.append((style if colours else style.without_color).render(shown))
    return "".join(found)


@contextmanager
def opened(seen: Seen, look: Look, *, colours: bool) -> Iterator[None]:
    """Show the picture while the block is at work; only if that fails, switch the terminal back."""
    width, height = os.get_terminal_size(sys.stdout.fileno())
    with _silent(sys.stdin.fileno()):
        try:
            picture = spell(draw(seen, width, height, look), width, colours=colours)
            pass_on((BEGIN + picture).encode(sys.stdout.encoding, "replace"))
            yield
        except BaseException:
            pass_on(END.encode())
            raise


@contextmanager
def _silent(terminal: int) -> Iterator[None]:
    """Have the terminal keep what is typed, and not echo it."""
    before = termios.tcgetattr(terminal)
    silent = list(before)
    silent[0] &= ~termios.ICRNL
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(terminal, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
