"""Has the records of a session's agent read on once they have grown, which each pass asks.

It is loaded with the passes, so it knows nothing of databases and prices.
"""

from __future__ import annotations

import os
import time

from sm.plugins.cost.budget.meter import has_budget
from sm.plugins.cost.ledger.lag import note_reading
from sm.plugins.cost.ledger.progress import has_grown
from sm.sessions.followers import Follower
from sm.sessions.session import Session

PRELOADED = ("sm.plugins.cost.ledger.records.claude", "sm.plugins.cost.ledger.records.codex")
"""Readers that each pass of a session with growing records uses."""


def _follow(session: Session) -> None:
    """Enter them. It is in a process of its own, which alone loads what that takes."""
    from sm.plugins.cost.ledger.intake import follow

    if not has_budget(session):
        os.nice(10)  # agents and passes come first
    follow(session)


def _wants(session: Session) -> bool:
    grown = has_grown(session)
    if grown and has_budget(session):
        note_reading(session, time.time())
    return grown


FOLLOWER = Follower(_follow, _wants)
