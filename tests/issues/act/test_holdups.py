"""That a machine lacks room is told to people by one session of the project, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.base.need import NeedKind
from sm.issues.act.holdups import tell_of_holdups
from sm.issues.look import room
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.paths import Root
from tests.helpers import make_repository, open_project, put_session, sm_yaml


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    return open_project(sm_yaml(tmp_path))


def list_told(project: Project) -> list[tuple[str, str]]:
    found = journal.read(project.root.journal)
    return [(one.session, one.text) for one in found if isinstance(one, events.PersonTold)]


def test_a_full_disk_is_told_once_until_it_is_full_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (put_session(project, number) for number in (1, 2))

    def look() -> None:
        for session in (first, second, first):
            tell_of_holdups(session)

    look()
    assert list_told(project) == []
    monkeypatch.setattr(room, "explain_disk", lambda *_, **__: "the disk is nearly full")
    look()
    assert list_told(project) == []  # no tick has seen it yet
    room.note_shortages(project)
    look()
    [(name, text)] = list_told(project)
    assert name == first.name
    assert text.startswith("goes on, but nothing new is taken up: the disk is nearly full. du -xh")
    monkeypatch.undo()
    room.note_shortages(project)
    look()
    assert len(list_told(project)) == 1
    monkeypatch.setattr(room, "explain_disk", lambda *_, **__: "the disk is nearly full")
    room.note_shortages(project)
    look()
    assert len(list_told(project)) == 2


def test_its_kind_is_that_of_the_machine(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[NeedKind | None] = []
    monkeypatch.setattr("sm.channels.people.alert", lambda _, word: heard.append(word.need))
    monkeypatch.setattr(room, "explain_disk", lambda *_, **__: "the disk is nearly full")
    room.note_shortages(project)
    tell_of_holdups(put_session(project, 1))
    assert heard == [NeedKind.MACHINE]
