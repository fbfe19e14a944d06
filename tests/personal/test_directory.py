"""A directory that cannot be is refused in words, however it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.base.errors import UsageError
from sm.personal import lifecycle
from sm.sessions.machine import load_here
from sm.store.paths import Root


@pytest.mark.parametrize("path", ["/" + "a" * 4000, "/nowhere", "/etc/passwd", "/dev/null/x"])
def test_a_directory_that_cannot_be_is_refused(root: Root, path: str) -> None:
    order = lifecycle.Order(directory=Path(path), provider="generic", command="true")
    with pytest.raises(UsageError, match="it is no directory"):
        lifecycle.begin(load_here(None), order)
    assert not root.private.exists()
