"""Columns of tables: their widths, cuts in cells that are too long, and colours of words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

LEAST = 6
"""Number of cells that a column of any length has at least, if its own words are not shorter."""
COMMAND = re.compile(r"(?:(?<=[:,] )|^)sm [a-z]")
"""Beginning of a command in one of our cells; the command goes on up to the cell's end."""
NUMBER = re.compile(r"[#!]?\d[\w.,:%/-]*")

LONGEST_FIGURE = 8
"""Number of cells that a figure of a plugin has at most."""
STYLES = {
    **dict.fromkeys(("working", "starting", "pending"), "cyan"),
    **dict.fromkeys(("awaiting CI", "awaiting review", "changes", "unknown phase"), "yellow"),
    "parked": "yellow",
    **dict.fromkeys(("done", "merged", "passed", "approved"), "green"),
    **dict.fromkeys(("failed", "broken", "crashed", "damaged", "conflicts"), "bold red"),
    "escalated": "bold magenta",
    **dict.fromkeys(("busy", "running"), "cyan"),
    **dict.fromkeys(("dialog", "limited", "waiting"), "yellow"),
    **dict.fromkeys(("dead", "cut short"), "bold red"),
    "idle": "green",
    "ok": "green",
    "critical": "bold red",
}
"""Colour of a word, in each column that has only our own words."""


class Demand(NamedTuple):
    """Demand of a column: the cells of its longest word, and its share of scarce room.

    Without a share it has what it needs before those that have one.
    """

    need: int
    share: int = 0


def allot(demands: Sequence[Demand], room: int) -> list[int]:
    """Return the width of each column, which together fill `room` if one of them has a share.

    No column has more than it needs while another lacks something.
    """
    kept = sum(one.need for one in demands if not one.share)
    elastic = [one for one in demands if one.share]
    if kept + sum(min(one.need, LEAST) for one in elastic) > room:
        return _fill([Demand(one.need, max(1, one.share)) for one in demands], room)
    widths = iter(_fill(elastic, room - kept))
    found = [next(widths) if one.share else one.need for one in demands]
    if elastic:
        last = max(index for index, one in enumerate(demands) if one.share)
        found[last] += room - sum(found)
    return found


def _fill(demands: Sequence[Demand], room: int) -> list[int]:
    """Give each its need, if that is below its part of the room; the others share what is left."""
    widths = [0] * len(demands)
    left = set(range(len(demands)))
    while left:
        shares = sum(demands[index].share for index in left)
        parts = {index: room * demands[index].share // shares for index in left}
        modest = {index for index in left if demands[index].need <= parts[index]}
        for index in modest or left:
            widths[index] = demands[index].need if modest else parts[index]
        room -= sum(widths[index] for index in modest)
        left = left - modest if modest else set()
    return widths


def fit(text: str, width: int) -> str:
    """Return `text`, cut where it is too long; nothing of a command or a number is cut off."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    end = len(set_cell_size(text, max(0, width - 1)).rstrip(" "))
    if (command := COMMAND.search(text)) and command.start() < end:
        end = command.start()
    for number in NUMBER.finditer(text):
        if number.start() < end < number.end():
            end = number.start()
    return f"{text[:end].rstrip(' :,;(#')}…" if width > 0 else ""
