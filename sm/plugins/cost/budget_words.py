"""What `sm trace` and `sm events` say of budgets."""

from __future__ import annotations


def tell_changed(text: str) -> str:
    """The words for a limit that a person has raised or lowered."""
    return f"a budget was {text}"
