"""Stages end with their test, and a failed test shows what the session went through."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge import kinds
from sm.adapters.forge.local.repository import BareRepository
from sm.sessions.project import Project
from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests.adapters import memory_forge
from tests.adapters.forge_sides import LocalSide, MemorySide
from tests.adapters.memory_forge import SERVERS, MemorySettings, Server
from tests.e2e.play import REMOTE, Play
from tests.e2e.stage import Stage, make_stage
from tests.forges.sides import KINDS, RemoteSide, remote_side
from tests.hub import Hub

MakeStage = Callable[..., Stage]


@pytest.fixture
def stage_of(
    tmp_path: Path, root: Root, tmux_socket: str, request: pytest.FixtureRequest
) -> Iterator[MakeStage]:
    """Make a stage: `stage_of(auto=True, settings={…})`."""
    made: list[Stage] = []

    def make(*, auto: bool = False, settings: dict[str, object] | None = None) -> Stage:
        made.append(make_stage(tmp_path, auto=auto, settings=settings))
        return made[-1]

    yield make
    for stage in made:
        _show(stage)
        crash_log = stage.project.root.private / "crash.log"
        crashes = crash_log.read_text() if crash_log.exists() else ""
        stage.end()
        assert not crashes, crashes


def _show(stage: Stage) -> None:
    """Pytest prints this only where the test has failed."""
    for event in journal.read(stage.project.root.journal):
        print(f"{event.at:.3f} {event.session} {name_event(event)} {describe(event)}")
    for log in stage.project.root.sessions.glob("*/monitor.log"):
        with contextlib.suppress(FileNotFoundError):  # the session ends by itself just now
            print(f"--- {log}\n{log.read_text(errors='replace')}")


SETTINGS: dict[str, object] = {"merge": {"by": "sm"}, "ci": {"command": "true", "poll": "1h"}}


@pytest.fixture(params=["local", "memory", *REMOTE])
def play(
    request: pytest.FixtureRequest, stage_of: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Play]:
    monkeypatch.setattr("sm.plugins.forges.gitea.reader.UNCERTAIN_S", 0.0)
    stage = stage_of(settings=SETTINGS)
    project = stage.project
    hub = Hub(stage.config, project.settings, stage.repository)
    side: LocalSide | MemorySide | RemoteSide
    with contextlib.ExitStack() as running:
        if request.param == "local":
            side = LocalSide(hub, running)
        elif request.param in KINDS:
            folder = project.root.project(project.name).path
            folder.parent.parent.mkdir(mode=0o700, exist_ok=True)
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            side = running.enter_context(remote_side(request.param, hub, folder))
            project = Project(project.config, side.project)
        else:
            monkeypatch.setitem(kinds.OURS, "memory", memory_forge.__name__)
            server = Server(BareRepository(stage.repository.bare))
            monkeypatch.setitem(SERVERS, "here", server)
            settings = structs.replace(project.settings, forge=MemorySettings(name="here"))
            project, side = Project(project.config, settings), MemorySide(hub, server)
        side.admit("ada", "rita")
        yield Play(stage, side, project, running)
