"""Limits the tries for a secret: a few at once, then one after each pause."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

BURST = 5
PAUSE_S = 30.0


class Tries:
    """Counts all clients together: behind a proxy they cannot be told apart."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds from any start."""
        self._clock = clock
        self._left = float(BURST)
        self._at = clock()

    def wait_s(self) -> int:
        """Return the seconds until the next try is allowed; 0 means now."""
        self._refill()
        return 0 if self._left >= 1 else math.ceil((1 - self._left) * PAUSE_S)

    def note_wrong(self) -> None:
        """Count a wrong try, or one that is about to be checked."""
        self._refill()
        self._left = max(0.0, self._left - 1)

    def note_right(self) -> None:
        """Uncount the last try, because it was right."""
        self._left = min(BURST, self._left + 1)

    def _refill(self) -> None:
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._at) / PAUSE_S)
        self._at = now
