"""Sees which sessions on other machines have changed: such a machine writes no file here."""

from __future__ import annotations

import time

from sm.base.errors import SmError
from sm.plugins.page.looks import Looks
from sm.plugins.page.session_files import find_touched
from sm.views.session_row import SessionRow

LOOK_S = 3.0
"""Seconds between two looks, unless they take long."""
LOOKS_PART = 100
"""Denominator of the part of the time that looks take at most: one in so many."""


class RowsThere:
    """The rows of sessions elsewhere, as they were at the last look."""

    def __init__(self, looks: Looks) -> None:
        """Look at nothing yet."""
        self._looks = looks
        self._rows: dict[str, SessionRow] = {}
        self._next = 0.0

    def is_due(self) -> bool:
        """Say whether to look at them now."""
        return time.monotonic() >= self._next

    def look(self) -> set[str]:
        """Look at them. Return the sessions that are not as they were at the last look."""
        begun = time.monotonic()
        before, self._rows = self._rows, self._read()
        now = time.monotonic()
        self._next = now + max(LOOK_S, (now - begun) * LOOKS_PART)
        return find_touched(before, self._rows)

    def _read(self) -> dict[str, SessionRow]:
        try:
            return self._looks.read_there()
        except SmError:  # whoever asks for the page is told
            return {}
