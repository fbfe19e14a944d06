"""State of the composer of an agent CLI, which decides on a text that is typed now. Pure."""

from __future__ import annotations

from enum import StrEnum


class Prompt(StrEnum):
    """State of the composer on the screen.

    IDLE: a text begins a turn. BUSY: it is queued, or joins the turn. DIALOG: it answers a
    question. NONE: unknown, because the composer is not on the screen.
    """

    IDLE = "idle"
    BUSY = "busy"
    DIALOG = "dialog"
    NONE = "none"
