"""Finds what has left a screen that a full-screen program redraws in place. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

ENOUGH = 3
"""Number of equal rows, or a third of all, from which on the screen goes on."""


def find_left_behind(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the rows of `before` that have moved up and out of the screen `after`.

    Returns all rows if the screen shows something else now. A change in place (a spinner, a
    counter, the composer) is not among them.
    """
    written, shifts = sum(map(bool, before)), range(len(before) or 1)
    # Single rows are often equal by chance, but seldom several from the top on.
    best, shift = max((_same_from_top(before, after, shift), -shift) for shift in shifts)
    if best < min(ENOUGH, written):
        best, shift = max((_same(before, after, shift), -shift) for shift in shifts)
    if best < min(ENOUGH, written) and 3 * best < written:
        return list(before)
    return list(before[:-shift]) if shift else []


def _same_from_top(before: Sequence[str], after: Sequence[str], shift: int) -> int:
    """Count the equal written rows up to the first difference, moved up by `shift`."""
    moved = takewhile(lambda pair: pair[0] == pair[1], zip(before[shift:], after, strict=False))
    return sum(bool(old) for old, _ in moved)


def _same(before: Sequence[str], after: Sequence[str], shift: int) -> int:
    """Count all equal written rows, moved up by `shift`."""
    return sum(bool(old) and old == new for old, new in zip(before[shift:], after, strict=False))
