"""The chat as a channel: a person asks and answers in the threads about the issue.

Imports for the threads are within the methods, as whoever only shows a session uses none.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from sm.channels.channel import Channel, Word
from sm.sessions.session import IssueSession, Session
from sm.store.failpoint import crash_point


class Chat(Channel, Struct, frozen=True):
    """Threads about the issue of `session`; an SmError is raised if they cannot be used.

    A question is an entry under a key made of its word, so it is there once.
    """

    session: IssueSession
    place: ClassVar[str] = "in the chat"

    def ask(self, word: Word) -> None:
        """Put the question into the threads."""
        if not (database := self._find_database()):
            return
        from sm.plugins.chat.threads import bindings
        from sm.plugins.chat.threads.handoffs import open_bridge
        from sm.plugins.chat.threads.records import EntryType, HandoffClient

        asked, about = EntryType.QUESTION, (self.session.record.project, self.session.issue)
        with open_bridge(database) as handoffs:
            for one in bindings.list_about_issue(handoffs, *about):
                handoffs.add(one.handoff_id, asked, word.text, HandoffClient.CODE, key=word.id)
                crash_point("bridge:asked")

    def listen(self) -> None:
        """Give the session the entries of the chat that it has not got yet."""
        if self._find_database():
            from sm.plugins.chat.handover import hand_over

            hand_over(self.session)

    def name_way(self) -> str:
        """Say how a person answers there, if there is a thread."""
        # Without its id: the forge shows this, and an id is enough to write.
        return "a decision in the handoff about it" if self.threads else ""

    def introduce(self) -> str:
        """Say which threads are about the issue, and how the agent uses them."""
        from sm.plugins.chat.threads import agent_texts

        return agent_texts.write_note(self.threads)

    @cached_property
    def threads(self) -> tuple[str, ...]:
        """Ids of the threads about the issue, oldest first."""
        if not (database := self._find_database()):
            return ()
        from sm.plugins.chat.threads import bindings
        from sm.plugins.chat.threads.handoffs import open_bridge

        about = (self.session.record.project, self.session.issue)
        with open_bridge(database) as handoffs:
            return tuple(one.handoff_id for one in bindings.list_about_issue(handoffs, *about))

    def _find_database(self) -> Path | None:
        from sm.store import sqlite_file

        path = self.session.machine.settings.bridge_database
        return path if sqlite_file.is_there(path) else None


def open_chat(session: Session) -> Chat | None:
    """Return the threads about the session's issue, None if it has none."""
    return Chat(session) if isinstance(session, IssueSession) else None
