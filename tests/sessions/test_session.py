"""What a session says of itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import procfs
from sm.sessions import agent
from sm.sessions.agent import Agent
from sm.sessions.session import AdHocSession
from sm.store import lock
from sm.store.files import write_json
from sm.store.paths import Root, SessionDir
from tests.residents import settle

Look = Callable[[SessionDir], object]


def has_ended_while(
    session: AdHocSession, monkeypatch: pytest.MonkeyPatch, look: str, come: Callable[[], None]
) -> bool:
    """Whether the session says that it has ended if its agent comes (`come`) right after `look`."""
    real: Look = getattr(agent, look)
    left = [come]

    def look_and_come(directory: SessionDir) -> object:
        found = real(directory)
        if left:
            left.pop()()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(agent, look, look_and_come)
        return session.has_ended


@pytest.mark.parametrize("look", ["load", "is_alive"])
def test_a_session_has_not_ended_while_its_first_agent_comes(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    known = settle(root, tmp_path, "s-1")
    session = AdHocSession(structs.replace(known.record, created_at=time.time()))
    line = session.dir.agent_pid.read_text()
    session.dir.agent_pid.unlink()
    me = procfs.find(os.getpid())
    assert me

    def come() -> None:
        session.dir.agent_pid.write_text(line)
        session.dir.agent_pid.chmod(0o600)
        write_json(session.dir.agent, Agent("s-1", me.pid, me.started, "%1", time.time(), 1))

    assert not session.has_ended
    assert not has_ended_while(session, monkeypatch, look, come)


def test_a_session_has_not_ended_while_its_agent_is_replaced(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = settle(root, tmp_path, "s-1")
    line = session.dir.agent_pid.read_text()
    session.dir.agent_pid.unlink()
    session.dir.rotation.touch()

    def come() -> None:
        session.dir.agent_pid.write_text(line)
        session.dir.agent_pid.chmod(0o600)
        session.dir.rotation.unlink()

    assert not has_ended_while(session, monkeypatch, "is_alive", come)


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
