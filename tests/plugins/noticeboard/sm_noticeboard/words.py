"""What `sm trace` and `sm events` say of the board."""

from __future__ import annotations


def tell_pinned(text: str) -> str:
    """Return the words for a notice that was pinned; `text` is its title."""
    return f"pinned a notice to the board: {text}"
