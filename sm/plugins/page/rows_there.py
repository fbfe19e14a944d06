"""Sees which sessions on other machines have changed: these write no file here."""

from __future__ import annotations

import time

from sm.base.errors import SmError
from sm.plugins.page.looks import Looks
from sm.plugins.page.session_files import find_touched
from sm.views.board import BoardRow

LOOK_S = 3.0
"""Between two looks, unless they take long."""
LOOKS_PART = 100
"""The looks take at most one in so many parts of the time."""


class RowsThere:
    """The rows of sessions elsewhere, as they were at the last look."""

    def __init__(self, looks: Looks) -> None:
        """Nothing was looked at yet."""
        self._looks = looks
        self._rows: dict[str, BoardRow] = {}
        self._next = 0.0

    def is_due(self) -> bool:
        """Whether to look at them now."""
        return time.monotonic() >= self._next

    def look(self) -> set[str]:
        """Look at them. Returns the sessions that are not as they were at the last look."""
        begun = time.monotonic()
        before, self._rows = self._rows, self._read()
        now = time.monotonic()
        self._next = now + max(LOOK_S, (now - begun) * LOOKS_PART)
        return find_touched(before, self._rows)

    def _read(self) -> dict[str, BoardRow]:
        try:
            return self._looks.read_there()
        except SmError:  # whoever asks for the page is told
            return {}
