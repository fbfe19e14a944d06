"""Lines about what waits for a person: a sentence, and the command that answers it, never cut."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sm.base.need import CUT
from sm.base.text import one_line
from sm.views.columns import fit
from sm.views.times import format_age

if TYPE_CHECKING:
    from rich.text import Text

    from sm.views.open_need import OpenNeed

NOTHING, UNSEEN = "nothing needs you", "nothing is known to need you"
"""Words for no needs, and for a project that has not been looked at yet."""
INDENT = 5
"""Number of cells before a sentence: an age, and a gap."""
GAP = 3
TITLE = 40
"""Number of characters of a title: it is there to be recognised."""


def draw_needs(needs: Sequence[OpenNeed], width: int, most: int | None = None) -> list[Text]:
    """Return the lines for a terminal, of the first `most` of them.

    A command stands beside its sentence if all have room for that, else below it.
    """
    from rich.text import Text

    if not needs:
        return [Text(NOTHING, "green")]
    shown = needs[:most]
    heads = [_name_age(one) for one in shown]
    texts = [_tell(one, width) for one in shown]
    column = _find_column(texts, [one.command for one in shown], width)
    lines = [Text(f"needs you: {len(needs)}", "bold magenta")]
    for one, head, text in zip(shown, heads, texts, strict=True):
        lines += _draw(one, head, text, column, width)
    if len(needs) > len(shown):
        lines.append(Text(f"{'':{INDENT}}… and {len(needs) - len(shown)} more: sm needs", "dim"))
    if any(one.whole for one in shown):
        lines.append(Text(f"{'':{INDENT}}{CUT}: sm needs -v has all of it", "dim"))
    return lines


def list_whole_needs(needs: Sequence[OpenNeed]) -> Iterator[str]:
    """List each need in full: nothing of a sentence or of an agent's words is cut."""
    for one in needs:
        name, text = one.name or one.project, one.text.removesuffix(CUT).rstrip()
        about = f"{name} “{one_line(one.title)}”" if one.title else name
        told = f"{about}: {text}" if about else text
        yield one_line(" ".join(filter(None, (_name_age(one), told))))
        yield f"  {one.command}"
        yield from (f"  | {line}".rstrip() for line in one.whole.splitlines())


def _find_column(texts: Sequence[str], commands: Sequence[str], width: int) -> int:
    """Find the column of the commands beside their sentences; 0 if they stand below them."""
    from rich.cells import cell_len

    column = INDENT + max(map(cell_len, texts)) + GAP
    return column if column + max(map(cell_len, commands)) <= width else 0


def _draw(one: OpenNeed, head: str, text: str, column: int, width: int) -> Iterator[Text]:
    from textwrap import wrap

    from rich.cells import cell_len
    from rich.text import Text

    first, *more = wrap(text, max(width - INDENT, 20)) or [""]
    line = Text(f"{head:>{INDENT - 1}} {first}")
    if column:
        line.append(" " * (column - INDENT - cell_len(first)))
        line.append(one.command, "cyan")
        yield line
        return
    yield line
    yield from (Text(f"{'':{INDENT}}{rest}") for rest in more)
    yield Text(f"{'':{INDENT}}{one.command}", "cyan")


def _name_age(one: OpenNeed) -> str:
    return format_age(time.time() - one.since) if one.since else ""


def _tell(one: OpenNeed, width: int) -> str:
    """Return who it is about, and the sentence, in two lines at most; if it fits, the title."""
    name = one.name or one.project
    text = one_line(one.text)
    told = f"{name}: {text}" if name else text
    titled = f"{name} “{one_line(one.title, TITLE)}”: {text}" if one.title else told
    return titled if len(titled) <= width - INDENT else fit(told, 2 * (width - INDENT) - GAP)


def list_plain_needs(needs: Sequence[OpenNeed]) -> Iterator[str]:
    """List the needs for another program: one line each."""
    for one in needs:
        name = one.name or one.project
        about = f"{name} {one.title}".strip()
        since = f"since {_name_age(one)} " if one.since else ""
        yield one_line(f"needs you {since}{about}: {one.text}: {one.command}")
