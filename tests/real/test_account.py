"""Faults of an account, by both real clients: what each tells, and that all go on again."""

from __future__ import annotations

import pytest

from sm.messages import screen_state
from sm.sessions import agent_state, turn
from sm.sessions.agent_state import State
from sm.sessions.failure import Failure, Fault
from sm.sessions.session import Session
from tests.helpers import wait_for
from tests.real.api import Api, Reply
from tests.real.api import Failure as Refusal
from tests.real.test_codex_delivery import send, state


def read_failure(target: Session) -> Failure | None:
    """As a pass reads it."""
    return turn.read(target.dir, screen_state.correct(target).told).failure


@pytest.mark.parametrize(
    ("status", "fault", "rests"),
    [
        (401, Fault.ACCESS, State.LIMITED),
        (429, Fault.LIMIT, State.LIMITED),
        (400, Fault.REQUEST, State.IDLE),
    ],
)
def test_a_turn_of_codex_that_fails_is_known_as_of_claude_code(
    target: Session, api: Api, status: int, fault: Fault, rests: State
) -> None:
    api.model = lambda _: Refusal(status, message="as the test says")
    send(target, "Begin.")
    found = wait_for(lambda: read_failure(target), "the failure", every_s=0.2)
    assert found
    assert (found.fault, found.count, state(target)) == (fault, 1, rests)
    assert str(status) in turn.read_notice(target.dir) or status == 400
    api.model = lambda _: Reply()
    send(target, "Again.")
    wait_for(lambda: len(api.main) > 1 and state(target) is State.IDLE, "the next turn")
    assert read_failure(target) is None
    assert agent_state.read(target.dir).shown is False
