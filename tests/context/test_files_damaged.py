"""Bytes that are no text, or no end of brackets, in a state file: an error that names the file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.base.errors import SmError
from sm.context import rotation_files, run
from sm.context.observe import observe
from sm.context.rotation import Cause, MessageKey, MessageKind, begin
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder
from sm.sessions import registry, window
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.sessions.settings import Settings
from sm.sessions.window import Window
from sm.store.files import discard
from sm.store.paths import Root
from tests.residents import settle, target


def test_a_session_whose_record_holds_no_utf8_is_reported_and_passed_over(root: Root) -> None:
    for name in ("s-1", "s-2"):
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
        registry.create(root, session)
    identity = root.session("s-1").identity
    identity.write_bytes(identity.read_bytes().replace(b"generic", b"\xff"))
    reported = list[SmError]()
    assert [session.name for session in registry.list_all(root, reported.append)] == ["s-2"]
    assert [str(identity) in error.message for error in reported] == [True]


def is_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def is_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def has_another_name(path: Path) -> None:
    path.write_bytes(b"100.5 PreCompact c1 auto\n")
    path.with_name(f"another-{path.name}").hardlink_to(path)


def is_endless(path: Path) -> None:
    path.write_bytes(b"[" * 100_000 + b"\n")


def is_no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00\n")


@pytest.mark.parametrize(
    "damage", [is_link, is_nothing, os.mkfifo, Path.mkdir, has_another_name, is_endless, is_no_text]
)
def test_no_file_of_the_hooks_holds_a_rotation_up(
    root: Root, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    session = settle(root, tmp_path, "s-1")
    session.dir.state.write_text(f"idle {time.time():.6f} c1 p1\n")
    for place in ("context", "events", "events_before", "compacting", "state"):
        path: Path = getattr(session.dir, place)
        path.unlink(missing_ok=True)
        damage(path)
        seen = observe(target(session, CLAUDE), begin("r", Cause.COMMAND, 1.0, "c1"))
        assert seen.begun == "", place
        assert (seen.idle_since is None) == (place == "state"), place


@pytest.mark.parametrize("damage", [is_link, os.mkfifo, Path.mkdir, is_no_text])
def test_no_message_and_no_receipt_holds_a_rotation_up(
    root: Root, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    session, record = settle(root, tmp_path, "s-1"), begin("r", Cause.COMMAND, 1.0, "c1")
    asked = Message(id=record.make_message_id(MessageKey(MessageKind.ASK)), text="Write.")
    queue.put(session.dir, asked)
    assert queue.move(session.dir, asked, MessageFolder.WAITING, MessageFolder.HANDED)
    damage(session.dir.typed)
    damage(session.dir.accepted)
    seen = observe(target(session, CLAUDE), record)
    assert (seen.lost, dict(seen.accepted)) == (frozenset(), {})
    (session.dir.queue / MessageFolder.HANDED / asked.name).unlink()
    damage(session.dir.queue / MessageFolder.HANDED / asked.name)
    assert not observe(target(session, CLAUDE), record).lost


@pytest.mark.parametrize("place", ["hold", "handoff", "rotation", "last_handoff"])
def test_no_file_of_a_rotation_holds_a_session_up(root: Root, tmp_path: Path, place: str) -> None:
    session = settle(root, tmp_path, "s-1")
    for damage in (is_link, is_nothing, os.mkfifo, Path.mkdir, is_no_text):
        damage(getattr(session.dir, place))
        run.advance(target(session, CLAUDE).provide(settings=Settings()))
        assert not rotation_files.is_wanted(session.dir), damage
        assert queue.passes(session.dir, "m1"), damage
        discard(getattr(session.dir, place))


@pytest.mark.parametrize("damage", [is_link, is_nothing, os.mkfifo, Path.mkdir, is_no_text])
def test_a_damaged_hold_holds_the_message_of_its_own_step_up_no_longer_than_a_look(
    root: Root, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    session, record = settle(root, tmp_path, "s-1"), begin("r", Cause.COMMAND, 1.0, "c1")
    rotation_files.write_record(session.dir, record)
    damage(session.dir.hold)
    assert not queue.passes(session.dir, "m1")
    run.advance(target(session, CLAUDE).provide(settings=Settings()))
    assert not queue.passes(session.dir, "m1")
    assert queue.passes(session.dir, record.make_message_id(MessageKey(MessageKind.ASK)))


@pytest.mark.parametrize("said", [r"/a\u0000b", r"/a\ud800b"])
def test_a_conversation_that_no_file_can_be_is_none(root: Root, tmp_path: Path, said: str) -> None:
    session = settle(root, tmp_path, "s-1")
    session.dir.context.write_text(f'{{"transcript_path": "{said}"}}\n')
    assert window.read(session.dir) == Window()
