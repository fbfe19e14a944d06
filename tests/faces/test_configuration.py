"""A configuration that changes under those who watch, and one that cannot be read any more."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from sm.__main__ import run
from sm.cli.status import Watched
from sm.plugins.metrics.reader import FactsReader
from sm.plugins.page.board_reader import BoardReader
from sm.plugins.top.feed import Feed
from sm.sessions.project import Project
from sm.views import projects as reading
from sm.views.projects import ProjectsReader
from tests.helpers import (
    an_issue,
    make_repository,
    open_project,
    put_session,
    put_snapshot,
    sm_yaml,
)
from tests.plugins.page.client import Browser, make_server

Read = Callable[[], str]
WATCHES = ("sm status --watch", "sm top", "page", "/metrics")


@pytest.fixture
def project(tmp_path: Path, root: object, monkeypatch: pytest.MonkeyPatch) -> Project:
    assert root
    make_repository(tmp_path)
    path = sm_yaml(tmp_path, trusted=["ada"])
    monkeypatch.setenv("SM_CONFIG", str(path))
    monkeypatch.setattr("sm.plugins.page.board_reader.FRESH_S", 0.0)
    made = open_project(path)
    put_session(made, 7)
    put_snapshot(made, an_issue(7))
    return made


def begin_to_watch(face: str, project: Project) -> Read:
    """What a watch shows that was begun with this project, as text, at each call."""
    machine = project.machine
    if face == "sm status --watch":
        watched = Watched(machine, (project,), ())

        def draw() -> str:
            out = io.StringIO()
            Console(file=out, width=300).print(watched.draw(300, 100))
            return out.getvalue()

        return draw
    if face == "sm top":
        feed = Feed(machine, ProjectsReader(machine, [project]))
        return lambda: str(feed.read())
    if face == "page":
        browser = Browser(make_server(machine))
        browser.log_in()
        return lambda: browser.get("/").text
    facts = FactsReader(machine)
    return lambda: str(facts.read())


@pytest.mark.parametrize("face", WATCHES)
def test_a_configuration_that_breaks_is_said_by_who_watches(face: str, project: Project) -> None:
    read = begin_to_watch(face, project)
    assert "onfiguration cannot" not in read()
    source = project.config.source
    whole = source.read_text()
    source.write_text("projects: [\n")
    told = read()
    if face == "/metrics":
        assert "'configuration': False" in told
        assert "<NeedKind.MACHINE: 'machine'>: (1," in told
    else:
        assert "The configuration cannot be used" in told
        assert "harb#7" in told or "harb: 1 session" in told, "what was known is gone"
    source.write_text(whole)
    assert "onfiguration cannot" not in read()


@pytest.mark.parametrize("verb", ["needs", "status"])
def test_a_configuration_that_breaks_is_no_reason_to_say_that_nothing_needs_anybody(
    verb: str, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.config.source.write_text("projects: [\n")
    assert run([verb]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert "sm.yaml" in told.err


@pytest.mark.parametrize("face", WATCHES)
def test_a_project_that_is_added_or_taken_out_is_seen_by_who_watches(
    face: str, project: Project, tmp_path: Path
) -> None:
    read = begin_to_watch(face, project)
    assert "loft" not in read()
    other = make_repository(tmp_path / "loft")
    added = {"name": "loft", "repo": str(other.clone), "forge": {"kind": "local", "path": "loft/f"}}
    before = yaml.safe_load(project.config.source.read_text())
    project.config.source.write_text(yaml.safe_dump({"projects": [before, added]}))
    put_session(open_project(project.config.source), 8)
    assert "loft" in read()
    project.config.source.write_text(yaml.safe_dump({"projects": [added]}))
    told = read()
    if face == "/metrics":
        assert "<NeedKind.MACHINE: 'machine'>: (1," in told
    else:
        assert "Nobody looks after 2 sessions (harb#7, harb#8)" in told


def test_sessions_of_a_project_that_was_taken_out_are_somebodys_matter(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_repository(tmp_path / "loft")
    left = {"name": "loft", "repo": str(other.clone), "forge": {"kind": "local", "path": "loft/f"}}
    project.config.source.write_text(yaml.safe_dump(left))
    assert run(["needs"]) == 1
    assert "Nobody looks after 1 session (harb#7)" in capsys.readouterr().out
    assert run(["status"]) == 0
    told = capsys.readouterr().out
    assert "harb: 1 session, not in the configuration" in told
    assert run(["needs", "--project", "loft"]) == 0  # it is none of this project's


def test_another_state_root_is_not_taken_for_the_same_machine(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SM_STATE_ROOT")
    settings = yaml.safe_load(project.config.source.read_text())
    settings["state_root"] = str(project.root.path)
    project.config.source.write_text(yaml.safe_dump(settings))
    made = open_project(project.config.source)
    reader = ProjectsReader(made.machine, [made])
    assert not reader.read().problem
    # Another length: the clock of files may not have ticked since.
    other = tmp_path / "another-root"
    other.mkdir(mode=0o700)
    project.config.source.write_text(yaml.safe_dump(settings | {"state_root": str(other)}))
    found = reader.read()
    assert "start this program again" in found.problem
    assert found.machine.root == made.root


def test_what_did_not_change_is_not_read_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ProjectsReader(project.machine, [project])
    reader.read()
    monkeypatch.setattr(reading, "load_any", None)
    assert [one.name for one in reader.read().projects] == ["harb"]


def test_a_page_that_is_open_hears_of_another_configuration(project: Project) -> None:
    looks = BoardReader(project.machine)
    looks.read()
    before = looks.stamp_configuration()
    assert looks.stamp_configuration() == before
    project.config.source.write_text("projects: [\n")
    assert looks.stamp_configuration() != before
