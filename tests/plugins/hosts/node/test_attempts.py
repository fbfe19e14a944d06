"""Who keeps the sessions of a node alive: whoever calls there, or the job of a cluster alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.plugins.hosts.node import attempts
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.e2e.stage import make_stage


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    assert root.path
    return make_stage(tmp_path, auto=False).project


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Each look after the sessions that is begun, but not taken."""
    found: list[object] = []
    monkeypatch.setattr(attempts, "fork_aside", found.append)
    return found


def test_whoever_calls_often_looks_after_sessions_now_and_then(
    project: Project, looks: list[object]
) -> None:
    attempts.keep_alive(project)
    attempts.keep_alive(project)
    assert len(looks) == 1


def test_in_a_job_no_step_looks_after_sessions(project: Project, looks: list[object]) -> None:
    with attempts.keeping_alive(project) as keep_alive:
        attempts.keep_alive(project)
        assert not looks, "what it begins would end with the step"
        keep_alive()
        assert len(looks) == 1
