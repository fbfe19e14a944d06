"""Comments of the issue itself: people are told by them, and answer by them."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from sm.adapters.forge.model import BOT
from sm.channels.channel import Asked, Channel, PersonReply, Word
from sm.sessions.session import IssueSession

COMMENT = "comment-"
"""Beginning of the id of an answer on the forge."""


class Comments(Channel, Struct, frozen=True):
    """Comments on the issue of `session`. A hidden mark in each that we write tells which it is."""

    session: IssueSession
    place: ClassVar[str] = "on the issue"

    def tell(self, word: Word) -> None:
        """Comment on the issue."""
        mentions = "".join(f"@{name} " for name in word.people)
        forge, text = self.session.project.forge, f"{mentions}{word.text}"
        forge.issues.comment(self.session.issue, text, author=BOT, marker=word.id)

    ask = remind = tell

    def list_replies(self, asked: Asked) -> list[PersonReply]:
        """Return the comments of trusted people behind the question's own.

        They have the time of the forge, which may differ from the time of this machine. So they are
        compared with that comment, where there is one.
        """
        ours = [one.at for one in asked.comments if asked.id and one.marker == asked.id]
        told_at = ours[0] if ours else asked.at
        return [
            PersonReply(f"{COMMENT}{one.at:.0f}-{one.author}", one.at, one.author, "")
            for one in asked.comments
            if not one.marker and one.at > told_at
        ]

    def name_way(self) -> str:
        """Return how a person answers there."""
        return "a comment on the issue"
