"""What a monitor has of a person's environment, and the agent has not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sm.config.load import load
from sm.sessions import monitors
from sm.sessions.caller import VARIABLE
from sm.sessions.launch import select_environment
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store import lock
from sm.store.paths import Root
from tests.helpers import make_repository, put_session


@pytest.fixture
def session(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> IssueSession:
    """One whose forge asks for a token, which a person's shell has."""
    assert root
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
    session.provide(project=project)
    return session


def test_the_token_of_a_forge_reaches_the_monitor_and_no_agent(session: IssueSession) -> None:
    assert monitors._keep_environment(session)["HARB_TOKEN"] == "secret"
    assert "HARB_TOKEN" not in select_environment(session.project.settings.agent)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The environments of monitors that were started; none of them runs."""
    found: list[dict[str, str]] = []
    monkeypatch.setattr(monitors, "spawn", lambda *_, env, log: found.append(env))
    return found


def test_a_monitor_that_a_hook_starts_has_the_environment_of_the_one_before(
    session: IssueSession, started: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://ada:secret@proxy")
    home = os.environ["HOME"]
    assert monitors.ensure(session)
    assert "secret" not in session.dir.monitor_env.read_text()
    monkeypatch.setenv(VARIABLE, session.name)
    monkeypatch.setenv("HOME", "/the/agents")
    monkeypatch.delenv("https_proxy")
    assert monitors.ensure(session)
    before, now = started
    assert now["HOME"] == home
    assert before.items() - now.items() == {("https_proxy", "http://ada:secret@proxy")}


def test_a_monitor_without_secrets_is_replaced_by_whoever_has_them(
    session: IssueSession, started: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert monitors.ensure(session)
    assert not monitors.stands_in(session)
    with monkeypatch.context() as inside:
        inside.setenv(VARIABLE, session.name)
        inside.delenv("HARB_TOKEN")
        assert monitors.ensure(session)
        assert monitors.stands_in(session)
        with lock.hold(session.dir.monitor_lock, timeout_s=1):
            assert not monitors.ensure(session), "an agent's verb has no more"
    with lock.hold(session.dir.monitor_lock, timeout_s=1):
        assert monitors.ensure(session)
    assert not monitors.stands_in(session)
    assert ["HARB_TOKEN" in env for env in started] == [True, False, True]
