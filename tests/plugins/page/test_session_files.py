"""When the files of sessions are looked at, and what is seen then."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.plugins.page import session_files
from sm.plugins.page.session_files import SessionFiles
from sm.sessions.project import Project
from tests.helpers import HANG_S, put_session
from tests.plugins.page.untold import make_untold


@pytest.fixture
def files(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionFiles]:
    """Those of no session yet; they may be looked at again at once."""
    monkeypatch.setattr(session_files, "LOOK_S", 0.0)
    monkeypatch.setattr(session_files, "LOOKS_PART", 0)
    monkeypatch.setattr(session_files, "STILL_S", HANG_S)
    with SessionFiles(project.root) as files:
        files.look()
        yield files


def settle(files: SessionFiles) -> set[str]:
    """Look until nothing is due; what was seen."""
    seen = set[str]()
    while files.is_due():
        seen |= files.look()
    return seen


def age(folder: Path) -> None:
    """Have all in it been written long ago: two writes within one tick of the clock look alike."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, ns=(1, 1))


def test_nobody_looks_while_nothing_is_written(project: Project, files: SessionFiles) -> None:
    session = put_session(project, 3)
    assert settle(files) == {session.name}
    assert not files.is_due()
    session.dir.usage.write_text("41")
    assert files.is_due()
    assert files.look() == {session.name}


@pytest.mark.parametrize("place", ["state", "usage", "plan.json", "queue/new/1", "queue/done/1"])
def test_what_no_event_tells_is_seen(project: Project, files: SessionFiles, place: str) -> None:
    session = put_session(project, 3)
    for folder in ("new", "done"):
        (session.dir.queue / folder).mkdir(parents=True, exist_ok=True)
    age(session.dir.path)
    settle(files)
    (session.dir.path / place).write_text("new")
    assert settle(files) == {session.name}


def test_a_folder_that_gets_another_time_is_seen(project: Project, files: SessionFiles) -> None:
    """The demo has rows read again in this way."""
    session = put_session(project, 3)
    settle(files)
    os.utime(session.dir.path, ns=(1, 1))
    assert settle(files) == {session.name}


def test_a_session_that_is_begun_anew_is_watched_again(
    project: Project, files: SessionFiles
) -> None:
    session = put_session(project, 3)
    settle(files)
    shutil.rmtree(session.dir.path)
    assert settle(files) == {session.name}
    put_session(project, 3)
    assert settle(files) == {session.name}
    session.dir.usage.write_text("41")
    assert settle(files) == {session.name}


def test_where_the_kernel_does_not_tell_they_are_looked_at_all_the_same(
    project: Project, files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_untold(monkeypatch)
    put_session(project, 3)
    files.look()
    assert not files.look()
    assert files.is_due()


def test_they_are_looked_at_now_and_then_all_the_same(
    project: Project, files: SessionFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_files, "STILL_S", 0.0)
    put_session(project, 3)
    files.look()
    assert not files.look()
    assert files.is_due()
