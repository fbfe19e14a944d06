"""Reads a page of a list, in smaller pages if it is too long for one answer.

Whoever may write there can make a page that long, and would stop everything with it. Pure but for
`ask`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sm.plugins.forges.web.answer import Page
from sm.plugins.forges.web.errors import TooLongError

T = TypeVar("T")

SHARE = 10
"""A page that is too long is read in so many smaller ones, and each of those alike."""


def read_page(ask: Callable[[int, int], Page[T]], number: int, size: int) -> Page[T]:
    """Page `number`, counted from 1, of a list with `size` entries a page.

    `ask` returns the page with those two. An entry that is too long by itself is passed over.
    """
    try:
        return ask(number, size)
    except TooLongError as error:
        if size == 1:
            return Page([], 1, [f"an entry is passed over: {error.message}"])
    few = max(size // SHARE, 1)
    first = (number - 1) * (size // few) + 1
    parts = list[Page[T]]()
    for part in range(first, first + size // few):
        parts.append(read_page(ask, part, few))
        if not parts[-1].size:
            break
    return _join(parts)


def _join(parts: list[Page[T]]) -> Page[T]:
    return Page(
        [one for part in parts for one in part.found],
        sum(part.size for part in parts),
        [reason for part in parts for reason in part.bad],
        parts[-1].headers,
    )
