"""A CI command that hangs says nothing of the commit: a person is asked, no attempt is used up."""

from __future__ import annotations

import pytest

from sm.adapters.forge.model import CheckState
from sm.sessions.history import fold
from sm.sessions.plan import read_receipts
from tests.e2e.play import Play


@pytest.mark.parametrize("play", ["local"], indirect=True)
def test_ci_that_hangs_costs_no_attempt_and_asks_a_person(play: Play) -> None:
    issue = play.start()
    head = play.push(issue, "loop\n", "PHASE:awaiting_ci")
    play.check(head, CheckState.PENDING)  # as the runner writes it down at the timeout
    play.hears(issue, "CI timeout")
    assert play.decided() == ["open-pull", "ci-timeout"]
    session = play.stage.session(issue)
    assert not fold(read_receipts(session.dir)).fixes
    [said] = play.side.open().issues.read_comments(issue)
    assert "sm reply harb" in said.body
