"""`sm init` for a project whose forge is a server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.base.errors import UsageError
from sm.config.forges import RemoteSettings
from sm.config.load import load
from sm.plugins.forges.chooser import GH
from sm.plugins.forges.settings import (
    ForgejoSettings,
    GiteaSettings,
    GithubSettings,
    GitlabSettings,
)
from sm.setup.problems import list_project_problems
from sm.setup.remote_forge import ForgeChoice, choose_forge
from tests.forges.sides import KINDS, RemoteSide, remote_side
from tests.hub import make_hub


@pytest.fixture(params=KINDS)
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RemoteSide]:
    with remote_side(request.param, make_hub(tmp_path), tmp_path / "kept") as side:
        yield side


MADE = "sm.yaml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the person is in."""
    made = tmp_path / "here"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def init(side: RemoteSide, *more: str) -> int:
    options = {
        "--repo": side.hub.repository.clone,
        "--forge": side.kind,
        "--forge-url": side.site.url,
        "--repository": side.state.name,
        "--token-file": side.token_file("sm"),
        "--agent": "cat",
        "--output": MADE,
    }
    words = [str(word) for pair in options.items() for word in pair]
    return run(["init", *words, "--yes", *more])


def test_a_forge_that_is_there_is_set_up_with_its_labels(
    side: RemoteSide, capsys: pytest.CaptureFixture[str]
) -> None:
    side.state.labels = ["blocked"]
    assert init(side) == 0
    said = capsys.readouterr().out
    assert "made the label 'backlog' in 'harbor/harb'" in said
    assert set(side.state.labels) == {"backlog", "blocked", "in-progress"}
    [made] = load(Path(MADE), os.environ, Path.cwd()).projects
    assert made.forge == side.project.forge
    assert made.remote == "origin"
    left = list(list_project_problems(made, {}))
    assert len(left) == 1, "the remote of the test is a folder, and leads to no server"
    assert "does not lead to 'harbor/harb'" in left[0]


def test_whether_the_forge_has_ci_is_said_and_nothing_of_a_command(
    side: RemoteSide, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(side, "--ci", "make test") == 2
    assert "the forge runs CI, not sm" in capsys.readouterr().err
    assert init(side, "--ci", "none") == 0
    assert "CI: none" in capsys.readouterr().out
    [made] = load(Path(MADE), os.environ, Path.cwd()).projects
    assert isinstance(made.forge, RemoteSettings)
    assert not made.forge.has_ci
    written = Path(MADE).read_text()
    assert "\nci:" not in written
    assert "as files" not in written


def test_a_second_run_changes_nothing(side: RemoteSide, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(side) == 0
    capsys.readouterr()
    assert init(side) == 0
    said = capsys.readouterr().out
    assert "made the label" not in said
    assert "wrote" not in said


def test_a_token_that_is_refused_is_told_before_anything_is_written(
    side: RemoteSide, capsys: pytest.CaptureFixture[str]
) -> None:
    side.token_file("sm")
    side.state.tokens.clear()
    assert init(side) == 4
    assert "does not accept the token" in capsys.readouterr().err
    assert not Path(MADE).exists()


@pytest.mark.parametrize(
    ("kind", "url", "expected"),
    [
        ("github", "git@github.com:a/b.git", GithubSettings(repository="a/b", token_env="T")),
        ("github", "https://github.com/a/b", GithubSettings(repository="a/b", token_env="T")),
        (
            "github",
            "ssh://git@git.example.com:2222/a/b.git",
            GithubSettings(repository="a/b", url="https://git.example.com/api/v3", token_env="T"),
        ),
        (
            "forgejo",
            "ssh://git@codeberg.org/a/b.git",
            ForgejoSettings(repository="a/b", url="https://codeberg.org", token_env="T"),
        ),
        (
            "gitea",
            "https://user@code.example.com/a/b/",
            GiteaSettings(repository="a/b", url="https://code.example.com", token_env="T"),
        ),
        (
            "gitea",
            "https://user:key@git.example.com:3000/a/b",
            GiteaSettings(repository="a/b", url="https://git.example.com:3000", token_env="T"),
        ),
        (
            "forgejo",
            "http://localhost:3000/a/b.git",
            ForgejoSettings(repository="a/b", url="http://localhost:3000", token_env="T"),
        ),
        (
            "github",
            "https://git.example.com:8443/a/b",
            GithubSettings(
                repository="a/b", url="https://git.example.com:8443/api/v3", token_env="T"
            ),
        ),
        ("github", "https://github.com:443/a/b", GithubSettings(repository="a/b", token_env="T")),
        (
            "forgejo",
            "git+ssh://git@git.example.com:2222/a/b",
            ForgejoSettings(repository="a/b", url="https://git.example.com", token_env="T"),
        ),
        (
            "gitlab",
            "ssh://git@altssh.gitlab.com:443/a/b/c.git",
            GitlabSettings(repository="a/b/c", token_env="T"),
        ),
        (
            "gitlab",
            "git@git.example.com:a/b/c/d.git",
            GitlabSettings(repository="a/b/c/d", url="https://git.example.com", token_env="T"),
        ),
    ],
)
def test_the_remote_tells_the_repository(kind: str, url: str, expected: object) -> None:
    assert choose_forge(ForgeChoice(kind, token_env="T"), url) == expected


@pytest.mark.parametrize(
    ("wish", "url", "said"),
    [
        (ForgeChoice("github", token_env="T"), "/srv/b.git", "give --repository"),
        (ForgeChoice("github", token_env="T"), "git@github.com:a/b/c.git", "give --repository"),
        (ForgeChoice("gitea", repository="a/b", token_env="T"), "/srv/b.git", "give --forge-url"),
        (
            ForgeChoice("gitea"),
            "git@code.example.com:a/b.git",
            "make one at https://code.example.com/user/settings/applications",
        ),
    ],
)
def test_what_cannot_be_told_is_asked_for(wish: ForgeChoice, url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choose_forge(wish, url)


def test_the_github_cli_has_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gh").write_text("#!/bin/sh\n")
    (tmp_path / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{shlex.quote(os.environ['PATH'])}")
    found = choose_forge(ForgeChoice("github"), "git@github.com:a/b.git")
    assert found == GithubSettings(repository="a/b", token_command=GH)
