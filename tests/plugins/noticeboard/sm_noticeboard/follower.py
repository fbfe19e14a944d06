"""What the board shows of sessions at work."""

from __future__ import annotations

from sm_noticeboard.notices import is_pinned, pin
from sm_noticeboard.settings import Noticeboard

from sm.config.shapes import read_section
from sm.sessions.followers import Follower
from sm.sessions.session import Session


def is_new(session: Session) -> bool:
    """Whether there is a board, and nothing on it of the session."""
    board = read_section(session.machine.settings, Noticeboard).board
    return board is not None and not is_pinned(board, session.name)


def pin_name(session: Session) -> None:
    """Pin that it is at work."""
    settings = read_section(session.machine.settings, Noticeboard)
    if settings.board:
        pin(settings.board, session.name, f"{session.address}: at work\n", settings.keep)


FOLLOWER = Follower(follow=pin_name, wants=is_new)
