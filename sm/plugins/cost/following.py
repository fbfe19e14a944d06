"""Has the records of a session's agent read on once they have grown, which each pass asks.

It is loaded with the passes, so it knows nothing of databases and prices.
"""

from __future__ import annotations

import os

from sm.plugins.cost.growth import has_grown
from sm.sessions.followers import Follower
from sm.sessions.session import Session


def _follow(session: Session) -> None:
    """Enter them. It is in a process of its own, which alone loads what that takes."""
    from sm.plugins.cost.entering import follow

    os.nice(10)  # agents and passes come first
    follow(session)


FOLLOWER = Follower(_follow, has_grown)
