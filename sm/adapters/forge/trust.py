"""Trust in people: whose words may reach an agent, and whose reviews count."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct


class Trust(Struct, frozen=True):
    """People whom a project trusts: those it has `named`, or else the forge's `writers`.

    `writers` are those who may push to the repository, as the forge says. With both empty, no
    author is trusted.
    """

    named: Collection[str] = ()
    writers: Collection[str] = ()

    def includes(self, author: str) -> bool:
        """Whether the words of `author` may reach an agent."""
        return author in (self.named or self.writers)

    def includes_editor(self, editor: str, author: str) -> bool:
        """Whether a text of `author` may reach an agent that `editor` has saved last.

        If `editor` is '', the forge does not say who it was: the author, or somebody else who may
        push. The text counts only if all of those are trusted.
        """
        return self.includes(editor) if editor else not self.named and self.includes(author)
