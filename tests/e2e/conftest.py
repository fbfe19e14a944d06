"""Stages end with their test, and a failed test shows what the session went through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests.e2e.stage import Stage, make_stage

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
        print(f"--- {log}\n{log.read_text(errors='replace')}")
