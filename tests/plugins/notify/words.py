"""Words for tests, and a clock that is set by hand."""

from __future__ import annotations

import time

import pytest

from sm.base.need import NeedKind
from sm.plugins.notify.model import HeldWord

NOON = 1_780_000_000.0


def make_word(
    number: int = 7,
    sentence: str = "needs a person: which colour?",
    need: NeedKind = NeedKind.QUESTION,
    at: float = NOON,
    **more: object,
) -> HeldWord:
    """A word of the session of that issue."""
    address = f"shop#{number}"
    known: dict[str, object] = {
        "id": f"{address}:{sentence}",
        "session": f"dev-shop-{number}",
        "address": address,
        "command": f"sm reply shop {number} TEXT",
    }
    return HeldWord(at=at, need=need, sentence=sentence, **{**known, **more})  # type: ignore[arg-type]


class Clock:
    """What `time.time` says."""

    def __init__(self, at: float = NOON) -> None:
        self.at = at

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Clock:
        monkeypatch.setattr(time, "time", lambda: self.at)
        return self
