"""What a monitor has of a person's environment, and the agent has not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.config.load import load
from sm.sessions import monitors
from sm.sessions.launch import select_environment
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import make_repository, put_session


def test_the_token_of_a_forge_reaches_the_monitor_and_no_agent(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path)
    file = tmp_path / "sm.yaml"
    file.write_text(
        f"name: harb\nrepo: {repository.clone}\n"
        "forge: {kind: github, repository: harbor/harb, token_env: HARB_TOKEN}\n"
        "agent: {command: cat}\n"
    )
    monkeypatch.setenv("HARB_TOKEN", "secret")
    config = load(file, os.environ, tmp_path)
    project = Project(config, config.projects[0])
    session = put_session(project, 7)
    assert monitors._environment(session)["HARB_TOKEN"] == "secret"
    assert "HARB_TOKEN" not in select_environment(project.settings.agent)
