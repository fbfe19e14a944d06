"""Reads a list in the order of its changes, while others go on changing it. Pure but for `ask`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from sm.plugins.forges.rest.convert import read_moment

CURSOR = "cursor"
"""The validator that says up to which moment the forge was seen."""
PAGES = 40
"""Pages of a list; what was changed last beyond them is left out."""


class Dated(Protocol):
    """An entry of such a list."""

    @property
    def updated_at(self) -> str:
        """When it was changed last."""
        ...


T = TypeVar("T", bound=Dated)


def list_changed(
    ask: Callable[[float, int], tuple[list[T], bool]], since: float
) -> tuple[list[T], bool]:
    """The entries changed since, those changed last at the end; and whether that is all.

    `ask` returns the page of that number of those changed since a moment, which it writes to the
    second, and whether there is another page. Each page begins where the last one ended: what is
    changed meanwhile moves to the end of the list, and would make a page that is asked for by its
    number begin too late. So an entry may be there twice, and the later one counts.
    """
    found: list[T] = []
    after, page = since, 1
    for _ in range(PAGES):
        entries, has_more = ask(after, page)
        found += entries
        if not has_more:
            return found, True
        last = float(int(read_moment(entries[-1].updated_at))) if entries else after
        after, page = (after, page + 1) if last <= after else (last, 1)
    return found, False
