"""The name that was probably meant, where one is unknown. Pure."""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 0.75
"""How alike two names are of which one is taken for a slip of the finger."""
GUESS = 0.6
"""How alike two names are of which one is offered as what was meant."""


def find_nearest(name: str, known: Iterable[str], alike: float = NEAR) -> str:
    """The known name that is nearest to the unknown one; '' where none is near."""
    from difflib import get_close_matches  # only for an error

    return next(iter(get_close_matches(name, list(known), 1, alike)), "")


def advise(name: str, known: Iterable[str], otherwise: str, alike: float = GUESS) -> str:
    """`did you mean 'x'?` of the nearest known name; `otherwise` where none is near."""
    near = find_nearest(name, known, alike)
    return f"did you mean '{near}'?" if near else otherwise
