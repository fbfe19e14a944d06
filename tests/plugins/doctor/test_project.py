"""What `sm doctor` says of webhooks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.config.schema import Config, ProjectSettings
from sm.issues.look.snapshot import Snapshot
from sm.issues.look.webhooks import note_webhook, read_heard_webhooks
from sm.plugins.doctor.project import check_dev_poll, check_webhooks
from sm.plugins.forges.settings import GithubSettings
from sm.sessions.project import Project
from sm.setup.finding import Finding, Level, guard
from sm.store.files import write_json
from sm.store.paths import Root
from tests.helpers import put_session


@pytest.fixture
def project(tmp_path: Path, root: Root) -> Project:
    forge = GithubSettings(repository="harbor/harb", webhook_secret_env="HARB_SECRET")
    settings = ProjectSettings(name="harb", repo=tmp_path, forge=forge)
    config = Config(state_root=root.path, source=tmp_path / "sm.yaml", projects=(settings,))
    return Project(config, settings)


def found(project: Project) -> Finding:
    (finding,) = guard(lambda: check_webhooks(project))
    return finding


def without_secret(project: Project) -> Project:
    forge = GithubSettings(repository="harbor/harb")
    return Project(project.config, structs.replace(project.settings, forge=forge))


def test_a_project_without_a_secret_is_well(project: Project) -> None:
    finding = found(without_secret(project))
    assert finding.level is Level.OK
    assert finding.what == "no webhooks are configured: sm looks at the forge every 30s"


def test_webhooks_that_never_came_are_told_with_what_to_do(project: Project) -> None:
    finding = found(project)
    assert finding.level is Level.WARN
    assert finding.what.startswith("no webhook has arrived yet")
    assert "/webhooks/harb" in finding.advice


def test_the_last_webhook_is_told(project: Project) -> None:
    directory = project.directory
    note_webhook(directory, "check_run", wakes=True)
    heard = structs.replace(read_heard_webhooks(directory), at=time.time() - 125)
    write_json(directory.webhooks, heard)
    finding = found(project)
    assert (finding.level, finding.what) == (
        Level.OK,
        "webhooks: the last one arrived 2m5s ago (check_run)",
    )


def test_a_secret_that_cannot_be_read_is_told(project: Project, tmp_path: Path) -> None:
    note_webhook(project.directory, "ping")
    assert found(project).level is Level.OK, "the variable is that of sm serve"
    forge = structs.replace(project.settings.forge, webhook_secret_file=tmp_path / "none")
    finding = found(Project(project.config, structs.replace(project.settings, forge=forge)))
    assert finding.level is Level.FAIL
    assert "there is no webhook secret file" in finding.what


def test_rare_looks_are_no_dev_poll_that_does_not_run(project: Project) -> None:
    """As long as no tick was written down, the last look tells."""
    put_session(project, 1)
    write_json(project.directory.snapshot, Snapshot(taken_at=time.time() - 280))
    (finding,) = check_dev_poll(project)
    assert finding.level is Level.OK
    (finding,) = check_dev_poll(without_secret(project))
    assert finding.level is Level.FAIL
