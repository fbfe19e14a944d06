"""What would happen to a text that is typed into an agent CLI now. Pure."""

from __future__ import annotations

from enum import StrEnum


class Prompt(StrEnum):
    """What the screen shows of the composer.

    IDLE: a text begins a turn. BUSY: it is queued, or joins the turn. DIALOG: it answers a
    question. NONE: unknown, because the composer is not on the screen.
    """

    IDLE = "idle"
    BUSY = "busy"
    DIALOG = "dialog"
    NONE = "none"
