"""A session that goes on elsewhere: whether its document is there, and what else ends the wait."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.context import rotation_files
from sm.context.rotation import Cause, RotationRecord, RotationStage, begin
from sm.plugins.hosts.node.departure import Leaving, keep_document
from sm.sessions import pause
from sm.sessions.session import AdHocSession
from sm.store.files import write_atomic
from sm.store.paths import Root
from tests.residents import settle


@pytest.fixture
def ann(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdHocSession:
    monkeypatch.setattr("sm.sessions.monitors.ensure", lambda _: None)
    monkeypatch.setattr("sm.sessions.agent_process.is_reachable", lambda *_: True)
    session = settle(root, tmp_path, "s-000000aa")
    write_atomic(session.dir.state, f"idle {time.time():.6f} old prompt\n")
    return session


def put(session: AdHocSession, cause: Cause, step: RotationStage, **changes: object) -> None:
    record = structs.replace(begin("r1", cause, time.time(), "old"), step=step, **changes)
    rotation_files.write_record(session.dir, record)


def read(session: AdHocSession) -> RotationRecord:
    record = rotation_files.read_record(session.dir)
    assert record
    return record


def test_the_agent_is_asked_once_and_its_document_ends_the_wait(ann: AdHocSession) -> None:
    wait = Leaving(ann)
    assert not wait.is_done()
    assert (read(ann).cause, read(ann).step) == (Cause.LEAVE, RotationStage.REQUEST)
    assert not wait.is_done()
    put(ann, Cause.LEAVE, RotationStage.CLEAR)
    assert wait.is_done()
    rotation_files.drop(ann.dir)
    assert wait.is_done(), "it was given up"
    assert rotation_files.read_record(ann.dir) is None, "it is not asked again"


@pytest.mark.parametrize(
    ("step", "turns"), [(RotationStage.DOCUMENT, True), (RotationStage.VERIFY, False)]
)
def test_a_rotation_under_way_ends_with_its_document(
    ann: AdHocSession, step: RotationStage, turns: bool
) -> None:
    put(ann, Cause.CYCLE, step)
    assert Leaving(ann).is_done() is not turns, "one of a new context is there already"
    assert (read(ann).cause is Cause.LEAVE) is turns


def test_a_session_that_rests_is_not_asked(ann: AdHocSession) -> None:
    pause.set_mark(ann.dir, pause.PauseMark(time.time()))
    assert Leaving(ann).is_done()
    assert rotation_files.read_record(ann.dir) is None


def test_what_is_written_by_then_is_kept_whole_or_not(ann: AdHocSession) -> None:
    Leaving(ann).is_done()
    path = Path(read(ann).folder) / "handoff-half.md"
    path.write_text("half of it\n")
    assert keep_document(ann) == str(path)
    assert ann.dir.document.read_text() == "half of it\n"
    assert rotation_files.read_last_document(ann.dir) == path


def test_without_a_request_nothing_is_kept(ann: AdHocSession) -> None:
    assert keep_document(ann) == ""
    put(ann, Cause.CYCLE, RotationStage.DOCUMENT)
    assert keep_document(ann) == ""
