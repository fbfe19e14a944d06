"""Nearest known name to an unknown one, which was probably meant. Pure."""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 0.75
"""Likeness of two names, 0 to 1, from which on one is taken for a typing error of the other."""
GUESS = 0.6
"""Likeness of two names, 0 to 1, from which on one is offered as what was meant."""


def find_nearest(name: str, known: Iterable[str], alike: float = NEAR) -> str:
    """Return the known name that is nearest to the unknown one; '' if none is near."""
    from difflib import get_close_matches  # only for an error

    return next(iter(get_close_matches(name, list(known), 1, alike)), "")


def advise(name: str, known: Iterable[str], otherwise: str, alike: float = GUESS) -> str:
    """Return `did you mean 'x'?` for the nearest known name; `otherwise` if none is near."""
    near = find_nearest(name, known, alike)
    return f"did you mean '{near}'?" if near else otherwise
