"""Table of sessions: for a terminal of any width, and as plain text for a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sm.base.text import format_count, one_line
from sm.views.columns import LONGEST_FIGURE, STYLES, Demand, allot, fit
from sm.views.figures import list_headers
from sm.views.session import STATES
from sm.views.session_row import CHECKS, VERDICTS, SessionRow
from sm.views.times import tell_age

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

NARROW, WIDE, ROOMY, VERY_WIDE = 0, 120, 150, 200
GAP = 2
READABLE = 16
"""Number of cells that a column with a share needs before one that can be spared has room."""
UNBOUNDED = 10**6
"""Need of a column that takes whatever room there is."""


class TableColumn(NamedTuple):
    """Column of a table, shown from `narrowest` up to below `widest`.

    `share` is its part of scarce room. A column is at least `least` characters wide: a cell that
    grows by itself moves no other column. In a live view it has room for `longest` characters, so
    that another word moves none either; a column with a share has just that room there, unless its
    words are `steady`. `grows` is the number of characters by which a cell may yet grow while
    nothing happens. The words of a `coloured` column have the colours of `STYLES`. One that
    `yields` is left out of a terminal's table while it is empty, unless that is a live view. A
    column of numbers stands at the `right`. A `spare` one goes before columns with a share become
    unreadable.
    """

    header: str
    cell: Callable[[Any], str]
    narrowest: int = NARROW
    widest: int = 10**9
    share: int = 0
    least: int = 0
    longest: int = 0
    steady: bool = False
    grows: Callable[[Any], int] = lambda _: 0
    coloured: bool = False
    yields: bool = False
    right: bool = False
    spare: bool = False


def _longest(words: Iterable[str]) -> int:
    return max(map(len, words))


LONGEST_AGE = 3
"""Number of characters of an age of less than a hundred days."""


def _counted(row: SessionRow) -> list[tuple[int, str]]:
    return [(row.fixes, "fix"), (row.rounds, "round"), (row.restarts, "restart")]


def format_tries(row: SessionRow) -> str:
    """Format fixes, review rounds and restarts by their initials: `2f 1r`; restarts are `x`."""
    initials = {"fix": "f", "round": "r", "restart": "x"}
    return " ".join(f"{count}{initials[what]}" for count, what in _counted(row) if count)


def describe_attempts(row: SessionRow) -> str:
    """Say in words how often something was tried: `2 fixes, 1 round`."""
    return ", ".join(format_count(count, what) for count, what in _counted(row) if count)


TRIES_HELP = "f: fixes after a CI failure, r: review rounds, x: restarts"


def explain(rows: Iterable[SessionRow], width: int) -> str:
    """Explain the initials that a table of this width has for the `rows`; '' for none."""
    abbreviated = any(column.cell is format_tries for column in choose_columns(width))
    return TRIES_HELP if abbreviated and any(map(format_tries, rows)) else ""


SEE_BELOW = "see the problem below"
SEE_NEEDS = "you: sm needs"


def _last_event(row: SessionRow) -> str:
    if not row.event:
        return ""
    is_told_below = row.problem and row.problem in row.event
    event = row.event.partition(":")[0] if is_told_below else row.event
    return f"{tell_age(row.event_at)} ago {event}"


def _growing(row: SessionRow) -> int:
    return max(0, LONGEST_AGE - len(tell_age(row.event_at))) if row.event else 0


def _waits_for(row: SessionRow) -> str:
    return SEE_BELOW if row.problem else row.waits_for


def _waits_for_shortly(row: SessionRow) -> str:
    """Shorten what a row waits for, beside a list of needs, and beside the pull requests."""
    return SEE_NEEDS if row.need else _waits_for(row).replace("pull request ", "")


COLUMNS = (
    TableColumn("#", lambda row: str(row.issue), right=True),
    TableColumn("Title", lambda row: row.title, share=7, steady=True),
    TableColumn("Session", lambda row: row.id, ROOMY),
    TableColumn(
        "Phase",
        lambda row: row.state,
        longest=_longest(state for state, _ in STATES),
        coloured=True,
    ),
    TableColumn(
        "PR",
        lambda row: str(row.pull) if row.pull else "",
        widest=VERY_WIDE,
        yields=True,
        right=True,
    ),
    TableColumn(
        "CI", lambda row: row.ci, longest=_longest(CHECKS.values()), coloured=True, yields=True
    ),
    TableColumn(
        "Review",
        lambda row: row.review,
        longest=_longest(VERDICTS.values()),
        coloured=True,
        yields=True,
    ),
    TableColumn("Tries", format_tries, widest=ROOMY, yields=True),
    TableColumn("Attempts", describe_attempts, ROOMY, yields=True),
    TableColumn("Age", lambda row: tell_age(row.begun_at), least=LONGEST_AGE, right=True),
    TableColumn("Last event", _last_event, WIDE, share=3, grows=_growing),
    TableColumn("Waits for", _waits_for_shortly, widest=VERY_WIDE, share=5),
    TableColumn("Waits for", _waits_for, VERY_WIDE, share=3),
    TableColumn("Worktree", lambda row: row.cwd, VERY_WIDE),
)


KIN = (
    TableColumn("Name", lambda row: row.name, share=2, steady=True),
    TableColumn("State", lambda row: row.state, coloured=True),
    TableColumn(
        "For",
        lambda row: tell_age(row.state_since),
        WIDE,
        least=LONGEST_AGE,
    ),
    TableColumn("Age", lambda row: tell_age(row.begun_at), least=LONGEST_AGE, right=True),
    TableColumn("Agent", lambda row: row.provider),
    TableColumn("Waiting", lambda row: str(row.queued) if row.queued else ""),
    TableColumn("Id", lambda row: row.id),
    TableColumn("Parent", lambda row: row.parent, WIDE),
    TableColumn("Directory", lambda row: row.cwd, share=3),
)
"""Columns of sessions that work on no issue."""


HOST = TableColumn("Host", lambda row: row.host, share=1)


def add_host(of: Sequence[TableColumn], rows: Sequence[Any]) -> list[TableColumn]:
    """Return the columns and one for the machine behind the title, if any row has another."""
    if not any(row.host for row in rows):
        return list(of)
    return [*of[:2], HOST, *of[2:]]


def add_figures(of: Sequence[TableColumn], rows: Sequence[Any]) -> list[TableColumn]:
    """Return the columns and one for each kind of figure that any row has, behind the age."""
    headers = list_headers() if any(row.figures for row in rows) else {}
    added = [
        TableColumn(
            header,
            partial(_show_figure, name),
            longest=LONGEST_FIGURE,
            yields=True,
            right=True,
            spare=True,
        )
        for name, header in headers.items()
    ]
    place = 1 + next(at for at, column in enumerate(of) if column.header == "Age")
    return [*of[:place], *added, *of[place:]]


def _show_figure(name: str, row: Any) -> str:
    figure = row.figures.get(name)
    return figure.shown if figure else ""


def choose_columns(width: int, of: Sequence[TableColumn] = COLUMNS) -> list[TableColumn]:
    """Return the columns that a table of `width` characters has room for."""
    return [column for column in of if column.narrowest <= width < column.widest]


def _choose_telling(
    width: int, of: Sequence[TableColumn], rows: Sequence[object]
) -> list[TableColumn]:
    """Choose the fitting columns that say something of these rows."""
    fitting = choose_columns(width, of)
    return [one for one in fitting if not one.yields or any(map(one.cell, rows))]


def make_table(
    rows: Iterable[object],
    width: int | None = None,
    of: Sequence[TableColumn] = COLUMNS,
    *,
    live: bool = False,
    below: Sequence[Sequence[str]] = (),
) -> Table:
    """Make the table of the rows for a terminal of `width` characters, by default this one's.

    The columns of a `live` table stay where they are while its rows go on. Dimmed `below` them come
    lines that have only their first cells.
    """
    import shutil

    from rich import box
    from rich.table import Table
    from rich.text import Text

    width = width or shutil.get_terminal_size().columns
    pad = 1 if width >= WIDE else 0
    found = list(rows)
    shown = choose_columns(width, of) if live else _choose_telling(width, of, found)
    demands = _list_demands(shown, found, below, live=live)
    if not _is_room(demands, width - (len(shown) - 1) * (1 + pad)):
        shown = [column for column in shown if not column.spare]
        demands = _list_demands(shown, found, below, live=live)
    lines = [[one_line(column.cell(row)) for column in shown] for row in found]
    widths = allot(demands, width - (len(shown) - 1) * (1 + pad))
    made = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, pad, 0, 0),
        header_style="bold",
    )
    for column, wide in zip(shown, widths, strict=True):
        made.add_column(
            column.header,
            no_wrap=True,
            overflow="ellipsis",
            width=wide,
            justify="right" if column.right else "left",
        )
    for line in lines:
        cells = zip(shown, line, widths, strict=True)
        made.add_row(
            *(
                Text(fit(cell, wide), STYLES.get(cell, "") if column.coloured else "")
                for column, cell, wide in cells
            )
        )
    for few in below:
        made.add_row(*map(fit, few, widths), style="dim")
    return made


def _is_room(demands: Sequence[Demand], room: int) -> bool:
    """Whether columns that share scarce room can still be read."""
    return sum(min(one.need, READABLE) if one.share else one.need for one in demands) <= room


def _list_demands(
    shown: Sequence[TableColumn],
    rows: Sequence[object],
    below: Sequence[Sequence[str]],
    *,
    live: bool,
) -> list[Demand]:
    """List the demand of each column for these rows, and for the lines below them."""
    return [
        _demand(
            column,
            [one_line(column.cell(row)) + " " * column.grows(row) for row in rows]
            + [line[index] for line in below if index < len(line)],
            live=live,
        )
        for index, column in enumerate(shown)
    ]


def _demand(column: TableColumn, cells: Sequence[str], *, live: bool) -> Demand:
    """Return the demand of a column with these cells; one that changes often takes its share."""
    from rich.cells import cell_len

    if live and column.share and not column.steady:
        return Demand(UNBOUNDED, column.share)
    longest = max(map(cell_len, [column.header, *cells]))
    return Demand(max(longest, column.least, column.longest if live else 0), column.share)


def make_notes(notes: Iterable[tuple[str, Text]]) -> Table:
    """Make the grid below a table: a label and a text each."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for label, text in notes:
        grid.add_row(label, text)
    return grid


def list_plain_lines(rows: Sequence[object], of: Sequence[TableColumn] = COLUMNS) -> list[str]:
    """List the rows as lines for another program: no colours, cells up to 1,000 characters."""
    from rich.cells import cell_len

    shown = choose_columns(VERY_WIDE, of)
    lines = [[column.header.upper() for column in shown]]
    lines += [[one_line(column.cell(row)) or "-" for column in shown] for row in rows]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(shown))]
    return [
        "".join(
            cell + " " * (wide - cell_len(cell) + GAP)
            for cell, wide in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    ]
