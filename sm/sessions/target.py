"""A session with everything that is needed to reach its agent."""

from __future__ import annotations

from msgspec import Struct

from sm.adapters.agent.profile import Profile
from sm.adapters.tmux import Tmux
from sm.sessions.session import Session


class Target(Struct, frozen=True):
    """A session as a receiver of messages."""

    tmux: Tmux
    session: Session
    profile: Profile
