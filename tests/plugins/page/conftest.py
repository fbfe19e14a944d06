from __future__ import annotations

from pathlib import Path

import pytest

from sm.adapters.forge.model import CheckState
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import (
    a_pull,
    an_issue,
    make_repository,
    open_project,
    put_session,
    put_snapshot,
    sm_yaml,
)
from tests.plugins.page.client import Browser, make_server


@pytest.fixture
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    assert root.path == tmp_path / "state"
    make_repository(tmp_path)
    path = sm_yaml(tmp_path, trusted=["ada"])
    monkeypatch.setenv("SM_CONFIG", str(path))
    return open_project(path)


@pytest.fixture
def browser(project: Project) -> Browser:
    """One that has not logged in."""
    return Browser(make_server(project.machine))


@pytest.fixture
def review(project: Project) -> Project:
    """The project with a pull request that waits for a review."""
    put_session(project, 3, "Add a checkout", phase="PHASE:awaiting_review\n")
    put_snapshot(project, an_issue(3), a_pull(24, "fix/3", CheckState.SUCCESS))
    return project
