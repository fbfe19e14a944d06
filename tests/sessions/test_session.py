"""What a session says of itself."""

from __future__ import annotations

from pathlib import Path

from sm.store import lock
from sm.store.paths import Root
from tests.residents import settle


def test_a_session_whose_agent_is_being_replaced_lives(root: Root, tmp_path: Path) -> None:
    """For a moment no agent runs: who waits for its end must not be told of it."""
    session = settle(root, tmp_path, "s-1")

    def lives() -> bool:
        return session.is_living

    assert lives()
    session.dir.agent_pid.unlink()
    session.dir.rotation.touch()
    assert not lives()
    with lock.hold(session.dir.delivery_lock):
        assert lives()
        session.dir.rotation.unlink()
        assert not lives()
