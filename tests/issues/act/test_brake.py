"""A limit that is reached, or is free again, since the pass began that acts on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from sm.base.act import run
from sm.issues import meters
from sm.issues.act import brake
from sm.issues.act.reactor import react
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.messages.turn_stop import StopResult
from sm.sessions import plan as plans
from sm.sessions import spending_hold
from sm.sessions.history import STOPPED, StepVerb
from sm.sessions.plan import Plan, PlannedStep
from sm.sessions.session import IssueSession
from sm.store.paths import Root
from sm.testing.channel import make_session
from tests.e2e.stage import make_stage

OVER = Allowance(LimitStage.OVER, "issue:1", "$5.00 of $5.00", None, run("sm budget raise harb 1"))
PLAN = Plan("limit-stop:1", "limit-stop", "1", time.time(), (PlannedStep(StepVerb.INTERRUPT),))


@pytest.fixture
def session(tmp_path: Path, root: Root, tmux_socket: str) -> IssueSession:
    """A session whose turn was to be interrupted; the pass that does so has put no mark there."""
    assert tmux_socket
    session = make_session(make_stage(tmp_path, auto=False).project)
    plans.save(session.dir, PLAN)
    return session


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sessions whose turn was ended."""
    found: list[str] = []

    def stop(session: IssueSession, *_: object) -> StopResult:
        found.append(session.name)
        return StopResult.STOPPED

    monkeypatch.setattr(brake, "stop_all", stop)
    return found


def let_meters_say(monkeypatch: pytest.MonkeyPatch, *said: Allowance | None) -> None:
    """One after the other; the last for good."""
    each: Iterator[Allowance | None] = chain(said, repeat(said[-1]))
    monkeypatch.setattr(meters, "read_allowance", lambda _: next(each))


def find_stops(session: IssueSession) -> list[str]:
    return [
        one.detail for one in plans.read_receipts(session.dir) if one.verb is StepVerb.INTERRUPT
    ]


def test_a_limit_reached_since_the_pass_began_stops_the_turn(
    session: IssueSession, stopped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_meters_say(monkeypatch, None, OVER)
    react(session.project, session.name)
    assert stopped == [session.name]
    assert find_stops(session) == [STOPPED]
    assert spending_hold.is_set(session.dir)


def test_a_stop_that_has_lost_its_sense_does_not_count_as_done(
    session: IssueSession, stopped: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests of unknown size are guessed; once they are known, a limit may be free again."""
    let_meters_say(monkeypatch, None)
    react(session.project, session.name)
    assert not stopped
    assert not find_stops(session)
    assert plans.read_pending(session.dir) is None
    assert PLAN.key not in {one.plan for one in plans.read_receipts(session.dir)}
