"""Looks in each pass whether the records of a session's agent have grown.

It is loaded with the passes, so it knows nothing of databases and prices.
"""

from __future__ import annotations

import os

from sm.adapters.agent.spending import find_reader
from sm.plugins.cost import growth
from sm.sessions import window
from sm.sessions.followers import Follower
from sm.sessions.session import Session


def wants(session: Session) -> bool:
    """Whether the records of the present conversation have grown since they were read last.

    A session that has just ended is also to be seen to.
    """
    reader = find_reader(session.profile.spending)
    present = window.read(session.dir)
    if reader is None:
        return False
    if present.conversation is None:
        return growth.is_left(session)
    return growth.read_size(session) != growth.measure(reader, present.conversation, present.id)


def _follow(session: Session) -> None:
    """Enter them. It is in a process of its own, which alone loads what that takes."""
    from sm.plugins.cost.entering import follow

    os.nice(10)  # agents and passes come first
    follow(session)


FOLLOWER = Follower(_follow, wants)
