"""Taking messages back: those that wait, and those that were handed over and never confirmed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.base.errors import SmError
from sm.messages import cancel as cancelling
from sm.messages import notification, queue
from sm.messages.cancel import cancel
from sm.messages.draft import TypedMessage
from sm.messages.queue import Message, MessageFolder
from sm.sessions import registry
from sm.sessions.caller import Caller, CallerError
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.store import lock
from sm.store.files import write_json
from sm.store.paths import Root
from tests.company import Company, make_company

ONE = Message(id="a" * 16, text="hello", sender="s-2")


def put(root: Root, name: str) -> AdHocSession:
    session = AdHocSession(
        AdHocRecord(
            name=name,
            provider="generic",
            cwd=root.path,
            config=None,
            state_root=root.path,
            created_at=1.0,
            command="true",
        )
    )
    return registry.create(root, session)


@pytest.fixture
def session(root: Root) -> AdHocSession:
    found = put(root, "s-1")
    notification.subscribe(found.dir, ONE.id, "s-2")
    queue.put(found.dir, ONE)
    return found


def hand_over(session: AdHocSession, *, typed_ago_s: float) -> None:
    queue.move(session.dir, ONE, MessageFolder.WAITING, MessageFolder.HANDED)
    write_json(session.dir.typed, TypedMessage(ONE.id, 3, "hello", time.time() - typed_ago_s))
    session.dir.expect.write_text(f"{ONE.id} exact\nhello\n\n")


def test_a_message_that_waits_is_taken_back_while_another_is_delivered(
    session: AdHocSession,
) -> None:
    with lock.hold(session.dir.delivery_lock):
        assert not cancel(Caller(), session, ONE.id)
    assert queue.is_empty(session.dir)
    assert not list(notification.list_waiters(session.dir))


def test_a_message_that_was_never_confirmed_is_under_way_no_more(session: AdHocSession) -> None:
    hand_over(session, typed_ago_s=61)
    assert cancel(Caller(), session, ONE.id)
    assert queue.is_empty(session.dir)
    assert not list(notification.list_waiters(session.dir))
    assert session.dir.expect.read_text() == ""  # its text is not handed over any more


def test_a_message_that_a_hook_has_handed_over_is_taken_back_in_time(
    session: AdHocSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.move(session.dir, ONE, MessageFolder.WAITING, MessageFolder.HANDED)
    session.dir.expect.write_text(f"{'b' * 16} exact\nother\n\n")
    with pytest.raises(SmError, match="a minute"):
        cancel(Caller(), session, ONE.id)
    monkeypatch.setattr(cancelling, "HANDED_S", 0.0)
    assert cancel(Caller(), session, ONE.id)
    assert queue.is_empty(session.dir)
    assert session.dir.expect.read_text()


def test_a_message_that_is_just_being_handed_over_is_not_taken_back(session: AdHocSession) -> None:
    hand_over(session, typed_ago_s=5)
    with pytest.raises(SmError, match="a minute"):
        cancel(Caller(), session, ONE.id)
    assert queue.find_place(session.dir, ONE.id) is MessageFolder.HANDED
    assert list(notification.list_waiters(session.dir))


def test_a_message_that_the_agent_has_is_not_taken_back(session: AdHocSession) -> None:
    hand_over(session, typed_ago_s=61)
    queue.accept(session.dir, ONE.id)
    with pytest.raises(SmError, match="delivered already"):
        cancel(Caller(), session, ONE.id)
    queue.settle(session.dir, ONE)
    with pytest.raises(SmError, match="delivered already"):
        cancel(Caller(), session, ONE.id)
    assert queue.find_place(session.dir, ONE.id) is MessageFolder.DONE


@pytest.mark.parametrize("handed", [False, True])
def test_a_session_takes_back_only_what_it_has_sent(
    root: Root, session: AdHocSession, handed: bool
) -> None:
    if handed:
        hand_over(session, typed_ago_s=61)
    with pytest.raises(CallerError, match="not yours"):
        cancel(Caller(put(root, "s-3")), session, ONE.id)
    assert queue.find_place(session.dir, ONE.id)
    cancel(Caller(put(root, "s-2")), session, ONE.id)
    assert queue.is_empty(session.dir)


@pytest.mark.parametrize("ident", ["b" * 16, "*", "../../x"])
def test_an_unknown_message_is_not_taken_back(session: AdHocSession, ident: str) -> None:
    with pytest.raises(SmError, match="there is none of this id"):
        cancel(Caller(), session, ident)
    assert queue.find_place(session.dir, ONE.id) is MessageFolder.WAITING


@pytest.fixture
def company(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[Company]:
    made = make_company(tmp_path, root)
    yield made
    made.end()


def test_the_command_line_says_that_the_agent_may_have_read_it(
    company: Company, session: AdHocSession
) -> None:
    hand_over(session, typed_ago_s=5)
    refused = company.sm("queue", "s-1", "--cancel", ONE.id, code=1)
    assert "it is just being handed over" in refused.stderr
    write_json(session.dir.typed, TypedMessage(ONE.id, 3, "hello", time.time() - 61))
    shown = json.loads(company.sm("queue", "s-1", "--json").stdout)
    assert [entry["place"] for entry in shown] == ["under way"]
    took = company.sm("queue", "s-1", "--cancel", ONE.id).stdout
    assert took == f"took {ONE.id} back, but the agent may have read it\n"
    assert json.loads(company.sm("queue", "s-1", "--json").stdout) == []


def test_a_damaged_message_is_shown_as_that(company: Company, session: AdHocSession) -> None:
    (session.dir.queue / "new" / ONE.name).write_bytes(b'"\xff"\n{}\n')
    for _ in range(2):
        shown = company.sm("queue", "s-1")
        assert f"damaged/{ONE.name}' is damaged" in shown.stderr
        assert shown.stdout == ""
