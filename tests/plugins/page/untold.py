"""A kernel that does not tell what is written."""

from __future__ import annotations

import pytest

from sm.plugins.page import written


def make_untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it refuse to watch: it is asked for no events."""
    for name in ("IN_MODIFY", "IN_MOVED_FROM", "IN_MOVED_TO", "IN_CREATE", "IN_DELETE"):
        monkeypatch.setattr(written, name, 0)
