"""A secret value of the configuration, which only the code that uses it may read."""

from __future__ import annotations

from sm.base.redact import MARK


class Secret:
    """A secret text. Printing it prints `[redacted]`; `text` is what it says."""

    __slots__ = ("text",)

    def __init__(self, text: str = "") -> None:
        """Keep the text."""
        self.text = text

    def __repr__(self) -> str:
        return MARK if self.text else ""

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def parse(value: object) -> Secret:
    """Read it from a text.

    Raises:
        ValueError: it is none; the message does not show it.

    """
    if not isinstance(value, str):
        raise ValueError("Expected text")
    return Secret(value)
