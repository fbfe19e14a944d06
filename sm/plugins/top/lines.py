"""Lines of entries: pieces, each a text and a style, for a width. Pure.

A piece has nothing that a terminal acts upon, and is never read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from sm.base.need import NeedKind
from sm.base.text import one_line, printable
from sm.plugins.top.listing import ListEntry
from sm.views.columns import LONGEST_FIGURE, STYLES, Demand, allot, fit
from sm.views.glossary import GLOSSARY, Group
from sm.views.open_need import OpenNeed
from sm.views.poll_absence import START
from sm.views.session_row import Mark, SessionRow
from sm.views.states import ShownState
from sm.views.times import format_age

Piece = tuple[str, str]
"""A text, and its style in rich's words."""
Line = tuple[Piece, ...]

SUMMARY_FROM, KEYS_FROM, NOTICE_FROM, DETAIL_FROM = 4, 6, 10, 14
"""Lines of a terminal from which on it has room for each of these parts."""
HEADER_FROM = 2
"""Lines of the list above which it begins with the names of its columns."""

NEED, DIM, HEAD = "bold magenta", "dim", "bold"
JOINED = re.compile("[\u200d\ufe00-\ufe0f]")
"""Characters that join or vary emojis: terminals do not agree on how wide the result is."""


class Glyphs(NamedTuple):
    """Marks of a track, and the one that says that a person is needed."""

    done: str
    now: str
    back: str
    ahead: str
    rule: str

    def of(self, mark: Mark) -> Piece:
        """Return a mark, and its colour."""
        match mark:
            case Mark.DONE:
                return self.done, "green"
            case Mark.NOW:
                return self.now, "bold cyan"
            case Mark.BACK:
                return self.back, "bold red"
        return self.ahead, DIM


UNICODE = Glyphs("✓", "▸", "✗", ".", "─")
ASCII = Glyphs("+", ">", "x", ".", "-")
"""Marks for a terminal whose font, or encoding, has little else."""


def plain(text: str, limit: int = 400) -> str:
    """Make `text` from anywhere fit for a line: of the same width on every terminal."""
    return JOINED.sub("", one_line(text, limit))


# The list


class Look(NamedTuple):
    """Moment and marks that lines are drawn with."""

    now: float
    glyphs: Glyphs


class Column(NamedTuple):
    """A column that is shown from `narrowest` on. One with a `share` has its part of the room."""

    header: str
    cell: Callable[[ListEntry, Look], Line]
    narrowest: int = 0
    least: int = 0
    most: int = 1000
    share: int = 0
    right: bool = False


def _mark(entry: ListEntry, _look: Look) -> Line:
    return (("!", NEED),) if entry.needs_person else ()


def _name(entry: ListEntry, _look: Look) -> Line:
    return ((plain(entry.name), DIM if entry.over else ""),)


def _title(entry: ListEntry, _look: Look) -> Line:
    return ((plain(entry.title), DIM if entry.over else ""),)


def _track(entry: ListEntry, look: Look) -> Line:
    if entry.row is None or entry.over:
        return ()
    return tuple(look.glyphs.of(mark) for _, mark in entry.row.track)


def _state(entry: ListEntry, _look: Look) -> Line:
    if entry.over:
        return (("over", DIM),)
    if entry.row is None:
        return ((plain(str(entry.need.kind)), NEED),) if entry.need else ()
    state = plain(str(entry.row.state))
    return ((state, STYLES.get(state, "")),)


def _age(entry: ListEntry, look: Look) -> Line:
    since = entry.row.state_since if entry.row else entry.need.since if entry.need else 0.0
    return ((format_age(look.now - since), ""),) if since and not entry.over else ()


def describe_tries(row: SessionRow) -> str:
    """Tell fixes, review rounds and restarts by their initials, as `sm status` has them."""
    counted = ((row.fixes, "f"), (row.rounds, "r"), (row.restarts, "x"))
    return " ".join(f"{count}{initial}" for count, initial in counted if count)


def _tries(entry: ListEntry, _look: Look) -> Line:
    return ((describe_tries(entry.row), ""),) if entry.row and not entry.over else ()


def _context(entry: ListEntry, _look: Look) -> Line:
    if entry.row is None or entry.row.percent is None or entry.over:
        return ()
    percent = entry.row.percent
    return ((f"{percent:.0f}%", "bold red" if percent >= FULL else ""),)


FULL = 85
"""Percent of a context from which on it is about to be replaced."""


def _words(entry: ListEntry, _look: Look) -> Line:
    if entry.over:
        return ((plain(entry.over), DIM),)
    if entry.need:
        return ((plain(entry.need.text), NEED),)
    row = entry.row
    if row is None:
        return ()
    if row.problem:
        return ((plain(row.problem), "yellow"),)
    said = plain(row.words)
    waits = plain(row.waits_for)
    both = " · " if said and waits else ""
    return ((waits, ""), (both, DIM), (said, DIM))


def _figure(name: str, entry: ListEntry, _look: Look) -> Line:
    figure = entry.row.figures.get(name) if entry.row else None
    return ((plain(figure.shown), DIM if entry.over else ""),) if figure else ()


COLUMNS = (
    Column("", _mark, least=1, most=1),
    Column("Session", _name, least=7, most=24),
    Column("Title", _title, narrowest=60, share=3),
    Column("Way", _track, narrowest=44, least=4, most=4),
    Column("State", _state, narrowest=24, least=max(map(len, ShownState)), most=15),
    Column("For", _age, narrowest=44, least=3, most=4, right=True),
    Column("Tries", _tries, narrowest=100, least=5, most=11),
    Column("Ctx", _context, narrowest=92, least=4, most=4, right=True),
    Column("Last words", _words, narrowest=48, share=5),
)
WITH_FIGURES = 110
"""Cells from which on there is room for figures of plugins."""
GAP = 1
LEAST_NAME = 10
"""Cells that a name may have on the narrowest terminal; on others a quarter of the width."""
TITLE = 48
"""Cells that a title gets at the most: it is there to be recognised."""


NO_HEADERS: Mapping[str, str] = {}


class Layout(NamedTuple):
    """Columns that a width has room for, and how wide each is."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    width: int = 0


def lay_out(
    entries: Sequence[ListEntry], width: int, look: Look, headers: Mapping[str, str] = NO_HEADERS
) -> Layout:
    """Choose each column's width for these entries; what grows by itself moves no other column.

    `headers` has the names of the figures that are shown, and what stands above each.
    """
    shown = tuple(one for one in _list_columns(headers) if one.narrowest <= width)
    demands = [_demand(column, entries, look, width) for column in shown]
    widths = allot(demands, width - GAP * (len(shown) - 1))
    return Layout(shown, tuple(max(0, wide) for wide in widths), width)


def _list_columns(headers: Mapping[str, str]) -> Iterator[Column]:
    """List all columns, those of figures before the last words."""
    yield from COLUMNS[:-1]
    for name, header in headers.items():
        cell = partial(_figure, name)
        # As wide as it may become, so that what grows moves nothing.
        yield Column(
            plain(header)[:LONGEST_FIGURE],
            cell,
            narrowest=WITH_FIGURES,
            least=LONGEST_FIGURE,
            most=LONGEST_FIGURE,
            right=True,
        )
    yield COLUMNS[-1]


def _demand(column: Column, entries: Sequence[ListEntry], look: Look, width: int) -> Demand:
    if column.cell is _words:
        return Demand(10**6, column.share)
    longest = max((measure(column.cell(entry, look)) for entry in entries), default=0)
    most = min(column.most, max(LEAST_NAME, width // 4)) if column.cell is _name else column.most
    need = max(column.least, min(longest, most), cell_len(column.header))
    return Demand(min(need, TITLE), column.share) if column.share else Demand(need)


def measure(line: Line) -> int:
    """Count the cells that the line takes."""
    return sum(cell_len(text) for text, _ in line)


def draw_header(layout: Layout) -> Line:
    """Draw the names of the columns."""
    cells = zip(layout.columns, layout.widths, strict=True)
    return _join([pad(((one.header, HEAD),), wide, right=one.right) for one, wide in cells])


def draw_entry(entry: ListEntry, layout: Layout, look: Look, *, selected: bool = False) -> Line:
    """Draw one entry of the list; a selected one is marked without a colour."""
    cells = zip(layout.columns, layout.widths, strict=True)
    line = _join([pad(one.cell(entry, look), wide, right=one.right) for one, wide in cells])
    return mark_selected(pad(line, layout.width)) if selected else line


def mark_selected(line: Line) -> Line:
    """Put the line in reverse video, which every terminal has; a need stays bold."""
    return tuple((text, "bold reverse" if "bold" in style else "reverse") for text, style in line)


def _join(cells: Sequence[Line]) -> Line:
    found: list[Piece] = []
    for index, cell in enumerate(cells):
        if index:
            found.append((" " * GAP, ""))
        found += cell
    return tuple(found)


def pad(line: Line, width: int, *, right: bool = False) -> Line:
    """Fit the line into that many cells: cut with an ellipsis, or filled with blanks."""
    left, found = width, list[Piece]()
    for text, style in line:
        if not text:
            continue
        size = cell_len(text)
        if size > left:
            cut = fit(text, left) if left > 0 else ""
            found.append((cut, style))
            left -= cell_len(cut)
            break
        found.append((text, style))
        left -= size
    blank: Piece = (" " * max(0, left), "")
    return (blank, *found) if right else (*found, blank)


# Around the list


def draw_rule(label: str, width: int, glyphs: Glyphs, style: str = DIM) -> Line:
    """Draw a line across, with a label in it."""
    head = f"{glyphs.rule * 2} {label} "
    return ((set_cell_size(head + glyphs.rule * max(0, width - cell_len(head)), width), style),)


def draw_summary(entries: Sequence[ListEntry], *, only_needs: bool, is_arranged: bool) -> Line:
    """Draw how many sessions there are, who works, and how much waits for a person."""
    rows = [one.row for one in entries if one.row and not one.over]
    needs = sum(one.needs_person for one in entries)
    working = sum(GLOSSARY[row.state].group is Group.WORKING for row in rows)
    what = "session" if len(rows) == 1 else "sessions"
    found: list[Piece] = [("sm top  ", HEAD)]
    found.append((f"{needs} need{'s' if needs == 1 else ''} you", NEED if needs else "green"))
    found.append((f"  {len(rows)} {what}, {working} at work", ""))
    if only_needs:
        found.append(("  only what needs you (!)", "yellow"))
    if not is_arranged:
        found.append(("  o: arrange anew", DIM))
    return tuple(found)


def draw_notice(needs: Sequence[OpenNeed], paused: Sequence[str], problems: Sequence[str]) -> Line:
    """Draw what holds everything up, and what cannot be read; () for nothing."""
    named = {need.project for need in needs if need.kind is NeedKind.POLL}
    told = [
        *paused,
        *(
            one
            for one in problems
            if not (one.endswith(START) and one.partition(":")[0] in named)  # which has a line
        ),
    ]
    if not told:
        return ()
    more = f"  (and {len(told) - 1} more: sm status)" if len(told) > 1 else ""
    return ((plain(told[0]), "yellow"), (more, DIM))


def draw_detail(entry: ListEntry | None, look: Look) -> tuple[Line, Line]:
    """Draw the selected entry in two lines: what it is, and what it waits for."""
    if entry is None:
        return (), ()
    named = f"{entry.name}  " if entry.name else ""
    first: list[Piece] = [(plain(named + entry.title), HEAD)]
    if entry.row:
        first.append((f"  {plain(', '.join(_facts(entry.row, look)))}", ""))
    return tuple(first), _waits(entry)


def _facts(row: SessionRow, look: Look) -> Iterator[str]:
    if row.host:
        yield f"on {row.host}"
    if row.pull:
        yield f"pull request #{row.pull}"
    if row.ci:
        yield f"CI {row.ci}"
    if row.review:
        yield f"review {row.review}"
    if tries := describe_tries(row):
        yield tries
    if row.percent is not None:
        yield f"context {row.percent:.0f} %"
    if row.queued:
        yield f"{row.queued} queued"
    yield f"{format_age(look.now - row.begun_at)} old"


def _waits(entry: ListEntry) -> Line:
    if entry.needs_person and entry.need:
        return ((plain(entry.need.command), "cyan"), (f"  {plain(entry.need.text)}", NEED))
    row = entry.row
    if row is None or entry.over:
        return ((plain(entry.over), DIM),)
    if told := plain(row.problem):
        return ((told, "yellow"),)
    if told := plain(row.waits_for):
        return ((told if told.startswith("paused") else f"waits for {told}", ""),)
    return ((f"last: {plain(row.event)}" if row.event else "", DIM),)


KEYS = (
    ("Enter", "open"),
    ("Space", "peek, answer"),
    ("r", "reply"),
    ("s", "send"),
    ("a", "attach"),
    ("p", "pause"),
    ("!", "needs me"),
    ("/", "find"),
    ("?", "help"),
    ("q", "quit"),
)
BACK = (
    ("Esc", "back"),
    ("j k", "scroll"),
    ("Space", "answer"),
    ("r", "reply"),
    ("s", "send"),
    ("a", "attach"),
    ("p", "pause"),
    ("?", "help"),
    ("q", "quit"),
)


PANEL = (("Enter", "do it"), ("Esc", "leave"), ("up down", "another session"))
"""Keys of the panel, with their words."""
WAYS = {"A": "approve", "C": "request changes", "M": "merge", "B": "raise the limit"}
"""Keys that answer needs of some kinds, with their words."""


def draw_keys(keys: Sequence[tuple[str, str]], width: int) -> Line:
    """Draw the keys, as far as there is room: those that the help tells go first."""
    shown = list(keys)
    for key in SPARED:
        if sum(len(key) + len(what) + 3 for key, what in shown) <= width + 2:
            break
        shown = [pair for pair in shown if pair[0] != key]
    return tuple(piece for key, what in shown for piece in ((key, HEAD), (f" {what}  ", DIM)))


SPARED = ("up down", "r", "s", "j k", "/", "!", "p", "a", "Enter", "Space", "Esc")


def wrap(text: str, width: int) -> list[str]:
    """Break a text from anywhere into lines of the width."""
    width = max(width, 10)
    found = []
    for line in JOINED.sub("", printable(text)).expandtabs(4).split("\n"):
        found += _wrap_line(line.rstrip(), width)
    return found


def _wrap_line(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    if len(line) == cell_len(line):
        from textwrap import wrap as wrap_words

        return wrap_words(line, width, drop_whitespace=True) or [""]
    return list(chop_cells(line, width))
