"""Those who wait for the end of a turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.base.errors import StateError
from sm.messages import notification, queue
from sm.messages.notification import tell_all
from sm.messages.queue import Message, MessageFolder
from sm.store.files import ensure_private_dir
from sm.store.paths import Root
from tests.residents import settle, texts


def test_waiting_for_a_session_that_is_gone_makes_no_remnant(root: Root) -> None:
    root.sessions.mkdir(parents=True, mode=0o700)
    directory = root.session("dev-shop-7")
    with pytest.raises(StateError, match="gone"):
        notification.subscribe(directory, "a" * 8, "s-1")
    assert not directory.path.exists()


def test_who_cannot_be_told_now_is_told_later(root: Root, tmp_path: Path) -> None:
    """Think of a full disk: the notification needs room there, to forget about it needs none."""
    teller, receiver = settle(root, tmp_path, "s-1"), settle(root, tmp_path, "s-2")
    notification.subscribe(teller.dir, "aaaaaaaa", receiver.name)
    ensure_private_dir(receiver.dir.queue, parents=False)
    folder = receiver.dir.queue / MessageFolder.WAITING
    folder.touch()
    queue.put(teller.dir, Message(id="aaaaaaaa", text="Build it."))
    tell_all(teller, "has ended", "end")
    folder.unlink()
    assert list(notification.list_waiters(teller.dir))
    tell_all(teller, "has ended", "end")
    tell_all(teller, "has ended", "end")
    assert not list(notification.list_waiters(teller.dir))
    [told] = texts(receiver)
    assert "has ended" in told
