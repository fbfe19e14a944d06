"""A way to people: a notice for each thing that they have to know."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from sm_noticeboard.notices import pin
from sm_noticeboard.settings import Noticeboard

from sm.channels.channel import Channel, Word
from sm.config.shapes import read_section
from sm.sessions.session import IssueSession, Session
from sm.store import journal
from sm.store.events import FromPlugin


class Board(Channel, Struct, frozen=True):
    """The board, for one session."""

    session: Session
    board: Path
    keep: int

    def tell(self, word: Word) -> None:
        """Pin it, once for each word."""
        text = f"{self.session.address}: {word.text}\n"
        if pin(self.board, word.id, text, self.keep):
            said = FromPlugin(session=self.session.name, event="notice-pinned", text=word.shortly)
            journal.record(self.session.root.journal, said)

    ask = remind = tell


def open_board(session: Session) -> Board | None:
    """Return the board of the session's project, or of the machine; None if there is none."""
    project = session.project if isinstance(session, IssueSession) else session.machine
    settings = read_section(project.settings, Noticeboard)
    return Board(session, settings.board, settings.keep) if settings.board else None
