"""Those who wait for the end of a turn."""

from __future__ import annotations

import pytest

from sm.errors import StateError
from sm.messages import subscriptions
from sm.store.paths import Root


def test_waiting_for_a_session_that_is_gone_makes_no_remnant(root: Root) -> None:
    root.sessions.mkdir(parents=True, mode=0o700)
    directory = root.session("dev-shop-7")
    with pytest.raises(StateError, match="gone"):
        subscriptions.add(directory, "a" * 8, "s-1")
    assert not directory.path.exists()
