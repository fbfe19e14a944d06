"""The agent's state, as its hooks have written it."""

from __future__ import annotations

import math
import time

import pytest

from sm.sessions import agent_state
from sm.sessions.agent_state import AgentState, State
from sm.store.paths import Root, SessionDir


@pytest.fixture
def directory(root: Root) -> SessionDir:
    found = root.session("s-1")
    found.path.mkdir(parents=True, mode=0o700)
    return found


def said(directory: SessionDir, since: object) -> AgentState:
    directory.state.write_text(f"idle {since} c1 p1\n")
    return agent_state.read(directory)


def test_a_state_says_since_when(directory: SessionDir) -> None:
    now = time.time()
    assert said(directory, now) == AgentState(State.IDLE, now, "c1", "p1")


def test_a_clock_that_was_set_back_makes_no_state_of_the_future(directory: SessionDir) -> None:
    found = said(directory, time.time() + 3600)
    assert found.state is State.IDLE
    assert found.since <= time.time()


def test_since_when_a_state_is_does_not_move_after_the_clock_was_set_back(
    directory: SessionDir,
) -> None:
    """What is told of it once would else be told at every look, and what waits wait for good."""
    first = said(directory, time.time() + 3600)
    assert agent_state.read(directory) == first
    assert time.time() > first.since + 60


@pytest.mark.parametrize("since", [math.inf, -math.inf, math.nan])
def test_a_time_that_is_none_is_damage(directory: SessionDir, since: float) -> None:
    assert said(directory, since) == AgentState()
