"""A kernel that does not tell what is written."""

from __future__ import annotations

import pytest

from sm.plugins.page import inotify


def make_untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it refuse to watch: it is asked for no events."""
    for name in [name for name in vars(inotify) if name.startswith("IN_")]:
        monkeypatch.setattr(inotify, name, 0)
