"""What an agent's programs have to know of the board."""

from __future__ import annotations

from collections.abc import Mapping

from sm_noticeboard.settings import Noticeboard

from sm.adapters.agent.profile import Profile
from sm.config.shapes import read_section
from sm.sessions.session import Session


def make_variables(
    session: Session, _profile: Profile, _environment: Mapping[str, str]
) -> Mapping[str, str]:
    """Where the board is."""
    board = read_section(session.machine.settings, Noticeboard).board
    return {"NOTICEBOARD": str(board)} if board else {}
