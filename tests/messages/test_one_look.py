"""How often a pass asks what an agent has said of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.tmux import Tmux
from sm.messages.follow_up import tend_messages
from sm.sessions import agent_state
from sm.sessions.agent_state import AgentState
from sm.store.paths import Root, SessionDir
from tests.residents import settle, target


def test_a_pass_asks_once_before_a_delivery_and_once_after_it(
    root: Root, tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = target(settle(root, tmp_path, "s-1"), CLAUDE).provide(tmux=tmux)
    asked, read = [0], agent_state.read

    def counted(directory: SessionDir) -> AgentState:
        asked[0] += 1
        return read(directory)

    monkeypatch.setattr(agent_state, "read", counted)
    tend_messages(session)
    assert asked == [2]
