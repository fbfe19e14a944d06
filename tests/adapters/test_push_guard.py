"""An agent's git pushes to its own remote, and to no other one of the clone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sm.adapters.environment import select_lasting_environment
from sm.adapters.push_guard import Remote, list_open, refuse_pushes
from sm.adapters.tmux import Tmux
from sm.config.load import load
from sm.config.schema import AgentSettings
from sm.sessions.launch import make_environment
from sm.sessions.project import Project
from sm.sessions.record import IssueRecord
from sm.sessions.session import IssueSession
from tests.helpers import Repository, git

SENTENCE = "agents do not push to origin, push to hub instead: git push hub HEAD"


@pytest.fixture
def clone(repository: Repository) -> Path:
    """A clone with a hub beside `origin`, whose path begins as that of `origin` does."""
    hub = repository.bare.with_name(f"{repository.bare.name}-hub")
    git(repository.clone, "clone", "-q", "--bare", str(repository.bare), str(hub))
    git(repository.clone, "remote", "add", "hub", str(hub))
    git(repository.clone, "fetch", "-q", "hub")
    return repository.clone


def open_session(clone: Path, folder: Path) -> IssueSession:
    """A session of issue 7 that was never begun, and works with `hub`."""
    file = folder / "sm.yaml"
    file.write_text(
        f"name: harb\nrepo: {clone}\nremote: hub\nforge: {{kind: local, path: {folder}}}\n"
    )
    config = load(file, {}, folder)
    settings = config.project("harb")
    assert settings
    record = IssueRecord(
        name="dev-harb-7",
        provider="generic",
        cwd=clone,
        config=file,
        state_root=folder,
        created_at=0.0,
        project="harb",
        issue=7,
        title="Mend it",
        branch="fix/7",
        base="main",
        remote="hub",
        repo=clone,
    )
    return IssueSession(record).provide(project=Project(config, settings))


def call_as_agent(clone: Path, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run git as the agent of a session does, by the environment that its launch gives it."""
    env = make_environment(Tmux(None), open_session(clone, folder), AgentSettings())
    env |= {name: os.environ[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}
    return subprocess.run(
        ["git", "-C", str(clone), *args], env=env, capture_output=True, text=True, check=False
    )


def list_refs(repository: Path) -> str:
    return git(repository, "for-each-ref")


@pytest.mark.parametrize(
    "words",
    [
        ["origin", "HEAD:main"],
        ["--force", "origin", "HEAD:main"],
        ["--mirror", "origin"],
        ["{url}", "HEAD:refs/heads/fix/7"],
        ["--no-verify", "--force", "{url}", "HEAD:main"],
    ],
)
def test_an_agent_does_not_push_to_the_origin_of_a_person(
    clone: Path, repository: Repository, tmp_path: Path, words: list[str]
) -> None:
    before = list_refs(repository.bare)
    git(clone, "commit", "-q", "--allow-empty", "-m", "work of an agent")
    args = [word.format(url=repository.bare) for word in words]
    said = call_as_agent(clone, tmp_path, "push", *args)
    assert said.returncode != 0
    assert SENTENCE in said.stderr
    assert list_refs(repository.bare) == before


def test_an_agent_pushes_to_the_hub_and_fetches_from_both(
    clone: Path, repository: Repository, tmp_path: Path
) -> None:
    hub = git(clone, "remote", "get-url", "hub")
    assert hub.startswith(str(repository.bare))
    for number, words in enumerate((["hub"], ["--force", "hub"], [hub])):
        said = call_as_agent(clone, tmp_path, "push", *words, f"HEAD:refs/heads/fix/{number}")
        assert said.returncode == 0, said.stderr
        assert f"refs/heads/fix/{number}" in list_refs(Path(hub))
    for remote in ("origin", "hub"):
        assert call_as_agent(clone, tmp_path, "fetch", remote).returncode == 0


def test_a_person_pushes_from_the_clone_as_before(clone: Path, repository: Repository) -> None:
    git(clone, "commit", "-q", "--allow-empty", "-m", "work of a person")
    git(clone, "push", "-q", "origin", "HEAD")
    assert git(clone, "rev-parse", "HEAD") in list_refs(repository.bare)


def test_a_push_address_of_its_own_is_refused_too(
    clone: Path, repository: Repository, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere.git"
    git(clone, "clone", "-q", "--bare", str(repository.bare), str(other))
    git(clone, "remote", "set-url", "--push", "origin", str(other))
    before = list_refs(other)
    said = call_as_agent(clone, tmp_path, "push", "origin", "HEAD:refs/heads/fix/7")
    assert SENTENCE in said.stderr
    assert list_refs(other) == before
    assert call_as_agent(clone, tmp_path, "fetch", "origin").returncode == 0
    assert list_open(clone, "hub") == []


def test_a_remote_that_cannot_be_refused_is_named(clone: Path, repository: Repository) -> None:
    assert list_open(clone, "hub") == []
    git(clone, "config", "remote.origin.pushurl", str(repository.bare))
    assert list_open(clone, "hub") == ["origin"]


def test_a_monitor_that_an_agent_starts_may_push_where_its_project_does(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make_environment(Tmux(None), open_session(clone, tmp_path), AgentSettings())
    assert any("pushInsteadOf" in value for value in env.values())
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert not any(name.startswith("GIT_CONFIG_KEY_") for name in select_lasting_environment())


HUB = Remote("hub", ("/srv/hub.git",), target="/srv/hub.git")


@pytest.mark.parametrize(
    ("configured", "typed"),
    [
        ("git@example.com:me/shop.git", "https://example.com/me/shop"),
        ("git@example.com:me/shop.git", "ssh://git@example.com/me/shop.git"),
        ("https://example.com/me/shop", "git@example.com:me/shop.git"),
        ("https://me:word@example.com/me/shop.git", "https://example.com/me/shop.git"),
        ("https://example.com:8443/me/shop.git", "https://example.com:8443/me/shop.git"),
        ("ssh://git@example.com/me/shop.git/", "ssh://git@example.com/me/shop"),
        ("../shop.git", "../shop.git"),
    ],
)
def test_another_spelling_of_the_same_address_is_refused(configured: str, typed: str) -> None:
    settings = refuse_pushes((HUB, Remote("origin", (configured,))), "hub")
    assert any(typed.startswith(prefix) for name, prefix in settings if "pushInsteadOf" in name)
    assert not any("hub.git" in prefix for _, prefix in settings)


def test_a_remote_at_the_same_address_as_the_own_one_is_not_refused() -> None:
    twin = Remote("origin", HUB.urls, pushed=HUB.urls)
    assert refuse_pushes((HUB, twin), "hub") == ()
