"""How long what needs a person is left to the person who runs the demo."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass
class Patience:
    """The script waits so many seconds with each need; 0: it answers at once.

    While nobody has come (`has_come`), the seconds count from the first need of all. So the demo
    ends by itself if nobody is there.
    """

    wait_s: float = 0.0
    has_come: Callable[[], bool] | None = None
    clock: Callable[[], float] = time.time
    _since: dict[str, float] = field(default_factory=dict)
    _first: float | None = None
    _came: float | None = None

    def find_end(self, need: str) -> float:
        """Until when (seconds since 1970) this need is left to the person."""
        now = self.clock()
        if self._first is None:
            self._first = now
        if self._came is None and self.has_come and self.has_come():
            self._came = now
        since = self._since.setdefault(need, now)
        begun = self._first if self._came is None else max(since, self._came)
        return begun + self.wait_s

    def forget_others(self, needs: Iterable[str]) -> None:
        """Forget what is not needed any more: should it come again, it waits again."""
        there = set(needs)
        self._since = {need: at for need, at in self._since.items() if need in there}
