"""Shape that every way to a person has: issue comments, question files, commands and chats.

A channel is a function that opens a `Channel` for a session, or returns None where the session has
no such channel. The core's own are in this room. A plugin names its own among its parts:

    PLUGIN = Plugin(channels={"pager": "sm_pager.channel:open_pager"})

and has in that module, which is imported wherever a session is looked at, so that it imports little
at its head:

    class Pager(Channel, Struct, frozen=True):
        session: Session

        def tell(self, word: Word) -> None:
            ring(f"{self.session.address} {word.shortly}", once=word.id)

        ask = remind = tell

    def open_pager(session: Session) -> Pager | None:
        return Pager(session)

`sm.channels.people` calls all of them. The issue is told last and is the place of record: only what
it refuses makes a step fail. Every other channel may fail by any `SmError`, and holds nothing up.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from sm.adapters.forge.model import Comment
from sm.base.need import NeedKind


class Word(Struct, frozen=True):
    """Text for a person: `text` is Markdown, `shortly` one line behind the session's name.

    A process may die between telling and noting it, and the next one tells again with the same
    `id`: by it a channel finds that it has told this. `people` are those that are asked, by their
    names on the forge. `need` says what a person is needed for, None: for nothing. `command`
    answers it as it stands there, and `links` are where it can be read.
    """

    id: str
    text: str
    shortly: str = ""
    people: tuple[str, ...] = ()
    need: NeedKind | None = None
    command: str = ""
    links: tuple[str, ...] = ()


class Asked(Struct, frozen=True):
    """An open question: the `id` of its word, and `at` when a person could first read it.

    `comments` are those on the issue at the last look, of trusted people and our own.
    """

    id: str
    at: float
    comments: tuple[Comment, ...] = ()


class PersonReply(Struct, frozen=True):
    """A person's answer at `at` (seconds since 1970). No other answer has its `id`.

    A comment of a forge has no text until it is looked up there. `by_session`: the agent of another
    session has given it, whose address is `author`.
    """

    id: str
    at: float
    author: str
    text: str
    by_session: bool = False


class Channel:
    """Way to a person, open for one session. A channel overrides what it can do.

    A process may die before it has noted that a word was told. The next one tells it again: then
    nothing more is told.
    """

    place: ClassVar[str] = ""
    """Place of a question, such as "in the vault"; '' for a channel that only notifies.

    People are told of a question that could not be put into a place: "not in the vault: …".
    """

    def tell(self, word: Word) -> None:
        """Tell something that needs no answer."""

    def ask(self, word: Word) -> None:
        """Put a question to people."""

    def remind(self, word: Word) -> None:
        """Say that a question is still open."""

    def settle(self) -> None:
        """Take back what is still asked: the session ends."""

    def withdraw(self) -> None:
        """Drop what nobody was told yet: another attempt has the issue, and the session ends.

        What was told and asked stays: it may be the other attempt's by now.
        """

    def list_replies(self, asked: Asked) -> list[PersonReply]:
        """Return the answers that stand there, all of them each time.

        This is called for each look at a session, also by `sm status`: it asks no server. What
        comes from one is given to the session by `listen`.
        """
        return []

    def listen(self) -> None:
        """Give the session what people have said there of their own accord.

        This is called in each pass. An answer goes by `sm.issues.reply.give`, anything else by
        `sm.messages.queue.put`, with an id made of what was said.
        """

    def list_watched(self) -> tuple[Path, ...]:
        """Return the files whose change calls for a pass, as it may be an answer."""
        return ()

    def reaches(self, need: NeedKind) -> bool:
        """Say whether a person hears of such a need here without looking for it.

        If nothing on a machine does that, the one that has placed a session there tells instead.
        """
        return False

    def name_way(self) -> str:
        """Return how a person answers there, as in "the file in the vault"; '' for not at all."""
        return ""

    def introduce(self) -> str:
        """Return what an agent has to know of it when its context begins; '' for nothing."""
        return ""
