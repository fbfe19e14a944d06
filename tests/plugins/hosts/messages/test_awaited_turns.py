"""Who waits for the end of a turn elsewhere is told it once, also if the session is over."""

from __future__ import annotations

import pytest

from sm.base.errors import UsageError
from sm.messages import queue
from sm.messages.queue import MessageFolder
from sm.plugins.hosts.messages import awaited_turns
from sm.plugins.hosts.messages.outbox import hand_on
from sm.plugins.hosts.there import There
from sm.sessions.caller import Caller
from sm.sessions.session import IssueSession
from tests.helpers import put_session
from tests.issues.farm import Farm
from tests.plugins.hosts.test_there import PLACED, answer
from tests.plugins.hosts.test_there import farm as farm
from tests.plugins.hosts.test_there import there as there


def await_turn(there: There, ident: str, waiter: IssueSession) -> None:
    found = awaited_turns.AwaitedTurn(ident, there.session, waiter.name)
    awaited_turns.add(there.project.directory, found)


@pytest.fixture
def waiter(there: There) -> IssueSession:
    """A session here that waits for the turn of message `abc` there."""
    session = put_session(there.project, 3)
    await_turn(there, "abc", session)
    return session


def list_waiting(session: IssueSession) -> list[str]:
    return [one.text for one in queue.list_messages(session.dir, MessageFolder.WAITING)]


def test_the_end_of_a_turn_there_is_told_here_once(
    farm: Farm, there: There, waiter: IssueSession
) -> None:
    for code in (124, 4):
        answer(farm, code)
        hand_on(there.project, [PLACED], farm)
        assert not list_waiting(waiter), "it is not over, or nobody answers"
    answer(farm, 0, "Done: \x1b[31mred")
    hand_on(there.project, [PLACED], farm)
    hand_on(there.project, [PLACED], farm)
    (text,) = list_waiting(waiter)
    assert text.startswith("[sm] 'harb#7' has ended its turn") or "harb#7 has ended" in text
    assert "Done: " in text
    assert "\x1b" not in text
    assert farm.list_calls()[-1] == "call wait dev-harb-7 --message abc --timeout 0 < "
    assert not awaited_turns.list_all(there.project.directory)


@pytest.mark.parametrize("code", [1, 2])
def test_a_session_that_is_gone_there_has_ended(
    farm: Farm, there: There, waiter: IssueSession, code: int
) -> None:
    answer(farm, code, "sm: there is no such session")
    hand_on(there.project, [PLACED], farm)
    (text,) = list_waiting(waiter)
    assert "has ended" in text


def test_a_placement_that_is_forgotten_has_ended(there: There, waiter: IssueSession) -> None:
    project = there.project
    awaited_turns.tell_gone(project.root, project.directory, "dev-harb-8", "harb#8")
    assert not list_waiting(waiter)
    awaited_turns.tell_gone(project.root, project.directory, "dev-harb-7", "harb#7")
    assert "has ended" in list_waiting(waiter)[0]
    assert not awaited_turns.list_all(project.directory)


def test_a_silent_host_is_asked_once_at_each_look(
    farm: Farm, there: There, waiter: IssueSession
) -> None:
    await_turn(there, "abd", waiter)
    farm.lose("one")
    hand_on(there.project, [PLACED], farm)
    assert len(farm.list_calls()) == 1


def test_a_person_is_not_told_so(there: There) -> None:
    with pytest.raises(UsageError, match="a person waits with 'sm wait'"):
        there.send(Caller(), ("harb#7", "hello"), "", notify=True)
    assert not awaited_turns.list_all(there.project.directory)
