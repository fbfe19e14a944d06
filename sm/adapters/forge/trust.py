"""Trust in people: whose words may reach an agent, and whose reviews count."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from sm.adapters.forge.model import Review, ReviewState


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


def find_last_verdict(reviews: Iterable[Review]) -> Review | None:
    """Find the newest review that is more than a comment, by anyone and of any commit."""
    said = (one for one in reviews if one.state is not ReviewState.COMMENTED)
    return max(said, key=lambda one: (one.at, one.id), default=None)


def verdict(reviews: Iterable[Review], head: str, trust: Trust) -> Review | None:
    """Find the review that decides: a standing request for changes, else an approval of `head`.

    The latest review of each reviewer that is more than a comment counts. An approval of an older
    commit says nothing about `head`; a request for changes stands until its author takes it back.
    """
    latest: dict[str, Review] = {}
    for review in sorted(reviews, key=lambda r: r.at):
        if review.state is not ReviewState.COMMENTED and trust.includes(review.author):
            latest[review.author] = review
    asking = [r for r in latest.values() if r.state is ReviewState.CHANGES_REQUESTED]
    approving = [r for r in latest.values() if r.state is ReviewState.APPROVED and r.head == head]
    return max(asking or approving, key=lambda r: r.at, default=None)
