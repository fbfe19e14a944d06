"""Parts of the screen that are drawn line by line, and a line to type in."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from sm.base.text import normalise, printable
from sm.plugins.top.lines import (
    HEADER_FROM,
    Glyphs,
    Layout,
    Line,
    Look,
    draw_entry,
    draw_header,
    lay_out,
)
from sm.plugins.top.listing import ListEntry, Listing
from sm.views.figures import list_headers

BREAK = "⏎"
"""Sign for a line break where only one line can be typed."""


def make_strip(line: Line, width: int) -> Strip:
    """Make a strip for Textual: no markup, and nothing that a terminal acts upon."""
    pieces = (
        Segment(printable(text).replace("\n", " "), Style.parse(style)) for text, style in line
    )
    return Strip(pieces).simplify().adjust_cell_length(width)


class Lined(Widget):
    """A widget of lines. Only those that have changed are drawn again."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._drawn: list[Line] = []

    def draw_lines(self, width: int, height: int) -> Sequence[Line]:
        """Return the lines that are to be seen now."""
        raise NotImplementedError

    def update(self) -> None:
        """Draw what has changed."""
        width, height = self.size
        if not height:
            return
        lines = list(self.draw_lines(width, height))[:height]
        lines += [()] * (height - len(lines))
        before, self._drawn = self._drawn, lines
        if len(before) != len(lines):
            self.refresh()
            return
        for y, (old, new) in enumerate(zip(before, lines, strict=True)):
            if old != new:
                self.refresh(Region(0, y, width, 1))

    def on_resize(self) -> None:
        """Draw for another size."""
        self._drawn = []
        self.fit()
        self.update()

    def fit(self) -> None:
        """Take in another size."""

    def render_line(self, y: int) -> Strip:
        """Return one line, for Textual."""
        line = self._drawn[y] if y < len(self._drawn) else ()
        return make_strip(line, self.size.width)


class Sheet(Lined):
    """Lines that are scrolled if there is not room for all."""

    def __init__(self, name: str, lines: Sequence[Line] = ()) -> None:
        super().__init__(name)
        self.lines = lines
        self.top = 0

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines instead; the scroll position stays."""
        self.lines = lines
        self.scroll_lines(0)

    def scroll_lines(self, by: int) -> None:
        """Scroll down by so many lines."""
        self.top = max(0, min(self.top + by, len(self.lines) - self.size.height))
        self.update()

    def draw_lines(self, width: int, height: int) -> Sequence[Line]:
        """Return the lines from where it is scrolled to."""
        return self.lines[self.top : self.top + height]


class BoardList(Lined):
    """Entries below the names of their columns."""

    def __init__(self, name: str, listing: Listing, glyphs: Glyphs) -> None:
        super().__init__(name)
        self.listing = listing
        self.now = 0.0
        self._glyphs = glyphs
        self._layout = Layout((), ())
        self._top = 0
        self._laid_out: list[ListEntry] | None = None

    def take(self, now: float) -> None:
        """Show the entries as they are now."""
        self.now = now
        if self._laid_out is not self.listing.entries:
            self.fit()
        self.update()

    def fit(self) -> None:
        """Lay out the columns for these entries and this width."""
        self._laid_out = self.listing.entries
        has_figures = any(one.row and one.row.figures for one in self._laid_out)
        headers = list_headers() if has_figures else {}
        self._layout = lay_out(self._laid_out, self.size.width, self._look, headers)

    @property
    def _look(self) -> Look:
        return Look(self.now, self._glyphs)

    @property
    def page(self) -> int:
        """Number of entries that are seen at once."""
        return max(1, self.size.height - (self.size.height > HEADER_FROM))

    def draw_lines(self, width: int, height: int) -> Sequence[Line]:
        """Return the entries around the selected one."""
        shown, page = self.listing.shown, self.page
        at = self.listing.position
        self._top = max(at - page + 1, min(self._top, at, max(0, len(shown) - page)))
        head = [draw_header(self._layout)] if page < height else []
        return head + [
            draw_entry(one, self._layout, self._look, selected=one.key == self.listing.selected)
            for one in shown[self._top : self._top + page]
        ]


class PromptLine(Input):
    """A line to type in. Pasted line breaks are kept, and shown by a sign."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name, compact=True, select_on_focus=False, placeholder="type here")
        self.cursor_blink = False

    def _on_paste(self, event: events.Paste) -> None:
        # Overridden: textual would take in the first line alone.
        event.stop()
        event.prevent_default()
        self.insert_text_at_cursor(normalise(event.text).expandtabs(4).replace("\n", BREAK))

    @property
    def text(self) -> str:
        """Typed text, with its line breaks."""
        return self.value.replace(BREAK, "\n")
