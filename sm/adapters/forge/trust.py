"""Whose words may reach an agent, and whose reviews count."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct


class Trust(Struct, frozen=True):
    """The people that a project trusts: those it has `named`, or else the forge's `writers`.

    `writers` are those who may push to the repository, as the forge says. With both empty, no
    author is trusted.
    """

    named: Collection[str] = ()
    writers: Collection[str] = ()

    def includes(self, author: str) -> bool:
        """Whether the words of `author` may reach an agent."""
        return author in (self.named or self.writers)
