"""Outages of CI: failures that say nothing of the commit, by the words that a project sets. Pure.

Words are looked for as they stand, without patterns: so a hostile log takes no more time than its
length.
"""

from __future__ import annotations

from collections.abc import Collection

from sm.adapters.forge.model import Check
from sm.base.text import one_line

END_LINES = 40
"""Last lines of the log, where a job says why it has ended. Further up a test may talk of a lost
network."""
WIDTH = 2000
"""Greatest number of characters of a line that are looked at."""


class OutageError(Exception):
    """CI itself has failed in the run that was to be told to the agent."""

    def __init__(self, run: str, reason: str) -> None:
        super().__init__(reason)
        self.run, self.reason = run, reason


def find_outage(check: Check, words: Collection[str], steps: Collection[str]) -> str:
    """Return why CI itself is to blame for a failure; '' if nothing says so.

    `words` are looked for at the end of the log, `steps` are names of steps before the tests.
    """
    if check.outage:
        return check.outage
    known = {name.casefold() for name in steps}
    named = check.step.replace(": ", ", ").split(", ")
    if found := [name for name in named if name.casefold() in known]:
        return f"the step '{one_line(found[0], 100)}' failed"
    for line in reversed(check.log.splitlines()[-END_LINES:]):
        shown = line[:WIDTH].casefold()
        if any(one and one.casefold() in shown for one in words):
            return one_line(line, 200)
    return ""
