"""The signs of an agent that decisions read. Pure."""

from __future__ import annotations

from msgspec import Struct

from sm.sessions.failure import Failure

DIALOG_PATIENCE_S = 5.0
"""Seconds for which a dialog is open before sm tells about it: some are over by themselves."""
PATIENCE_S = 60.0
"""Seconds before sm tells of a dialog that a person at the terminal sees, and of other things that
are mostly over soon: a turn that has ended without a word to sm, a merge that the forge still works
out."""
STARTING_S = (DIALOG_PATIENCE_S, 15.0, 30.0, PATIENCE_S)
"""Seconds from an agent's begin to each look for a dialog, as no hook tells of that."""


class Signs(Struct, frozen=True):
    """Signs of an agent from its hooks. Times are seconds since 1970.

    `doing` is its state in one word, for people. `active_at` is when a hook last ran.
    """

    doing: str = ""
    since: float = 0.0
    """Begin of what it is doing."""
    context: str = ""
    """The agent CLI's own id of its session."""
    active_at: float = 0.0
    ended_at: float | None = None
    """End of its turn, with none of its tasks left in the background.

    The time lies ahead if a person has just ended the turn by dismissing a dialog.
    """
    asks: str = ""
    """The question with which it ended that turn, in one line; '' for none."""
    starting_at: float | None = None
    """Time of its launch, if it has said nothing yet."""
    dialog_at: float | None = None
    """Time when the dialog that is open in its terminal opened."""
    failure: Failure | None = None
    """Failure of its last turn, if it failed."""
    sleeps: bool = False
    """Whether it has ended its turn, without a question, and a timer of its own begins another."""

    @property
    def busy(self) -> bool:
        """Whether its turn runs."""
        return self.doing == "busy"


SILENT = Signs()
