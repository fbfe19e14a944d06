"""Words for the states of a session; docs/GUIDE.md says what each of them means."""

from __future__ import annotations

from enum import StrEnum


class ShownState(StrEnum):
    """State of a session, in a word or two: first how far its issue is, then its agent."""

    STARTING = "starting"
    WORKING = "working"
    AWAITING_CI = "awaiting CI"
    AWAITING_REVIEW = "awaiting review"
    ESCALATED = "escalated"
    UNKNOWN = "unknown phase"
    DONE = "done"
    MERGED = "merged"
    FAILED = "failed"
    CRASHED = "crashed"
    PARKED = "parked"

    RUNNING = "running"
    BUSY = "busy"
    IDLE = "idle"
    WAITING = "waiting"
    DIALOG = "dialog"
    LIMITED = "limited"
    DEAD = "dead"
    CUT_SHORT = "cut short"
    ENDED = "ended"

    DAMAGED = "damaged"
