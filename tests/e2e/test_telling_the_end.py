"""Who waits for a session hears of its end, though not everybody can be told at that moment."""

from __future__ import annotations

import shutil

import pytest

from sm.issues.act import retry
from sm.messages import notification, queue
from sm.messages.queue import Message, MessageFolder
from sm.sessions import registry
from sm.sessions.session import AnySession, IssueSession
from sm.store.files import ensure_private_dir
from tests.e2e.play import Play, seen_anew
from tests.residents import settle, texts

LOCAL = pytest.mark.parametrize("play", ["local"], indirect=True)


def begin_to_wait(play: Play) -> tuple[IssueSession, AnySession]:
    """An issue's session, and one that wants to hear of its turn's end and cannot be written to."""
    issue = play.start()
    play.hears(issue, "You work on issue")
    session = registry.load_for(play.project, issue)
    waiter = settle(play.project.root, play.stage.folder, "s-1")
    notification.subscribe(session.dir, "aaaaaaaa", waiter.name)
    queue.put(session.dir, Message(id="aaaaaaaa", text="Build it."))
    ensure_private_dir(waiter.dir.queue, parents=False)
    shutil.rmtree(waiter.dir.queue / MessageFolder.WAITING, ignore_errors=True)
    (waiter.dir.queue / MessageFolder.WAITING).touch()
    play.side.open().issues.close(issue)
    seen_anew(play)
    play.react(issue)
    return session, waiter


@LOCAL
def test_who_cannot_be_told_of_an_end_is_told_later(play: Play) -> None:
    session, waiter = begin_to_wait(play)
    assert session.dir.identity.exists()
    (waiter.dir.queue / MessageFolder.WAITING).unlink()
    play.react(session.issue)
    assert not session.dir.identity.exists()
    [told] = [text for text in texts(waiter) if "has ended" in text]
    assert session.address in told


@LOCAL
def test_a_session_does_not_wait_for_ever_to_tell_of_its_end(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "TRY_FOR_S", 0.0)
    session, _ = begin_to_wait(play)
    assert not session.dir.identity.exists()
