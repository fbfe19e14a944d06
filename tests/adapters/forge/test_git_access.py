"""Git over HTTP gets the forge's token for one repository, and keeps it nowhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.forge.git_access import TokenPlace, find_place, list_git_settings
from sm.adapters.git import Git
from sm.adapters.git_call import RemoteUnreachableError, add_settings
from sm.adapters.git_push import ABSENT, Update
from sm.adapters.tmux import Tmux
from sm.adapters.token import TokenError, TokenSource
from sm.config.schema import AgentSettings, ProjectSettings
from sm.plugins.forges.git_credential_verb import answer
from sm.plugins.forges.rest.entry import find_rest_problems
from sm.plugins.forges.rest.forge import RestForge
from sm.plugins.forges.settings import ForgejoSettings, GithubSettings
from sm.sessions.launch import make_environment
from sm.sessions.project import Project
from sm.sessions.record import IssueRecord
from sm.sessions.session import IssueSession
from tests.forges.git_http import GitSite, serving_git
from tests.forked import run_sm
from tests.helpers import Repository, git, make_repository

TOKEN = "t0ken" + "-of-the-forge"


@pytest.fixture
def site(repository: Repository, tmp_path: Path) -> Iterator[GitSite]:
    """The remote of the clone over HTTP, and another repository beside it."""
    (tmp_path / "other").mkdir()
    other = make_repository(tmp_path / "other")
    places = {"/harbor/harb.git": repository.bare, "/mallory/harb.git": other.bare}
    with serving_git(places, TOKEN) as site:
        git(repository.clone, "remote", "set-url", "origin", f"{site.url}/harbor/harb.git")
        git(repository.clone, "remote", "add", "theirs", f"{site.url}/mallory/harb.git")
        yield site


@pytest.fixture
def project(site: GitSite, repository: Repository, tmp_path: Path) -> ProjectSettings:
    """The project; its token is in a file."""
    file = tmp_path / "a token"
    file.touch(mode=0o600)
    file.write_text(f"{TOKEN}\n")
    forge = ForgejoSettings(
        url=site.url, repository="harbor/harb", token_file=file, git_access="sm"
    )
    return ProjectSettings(name="harb", repo=repository.clone, forge=forge)


def with_access(project: ProjectSettings, access: str) -> ProjectSettings:
    forge = structs.replace(project.forge, git_access=access)
    return structs.replace(project, forge=forge)


def test_git_fetches_and_pushes_with_the_token(
    project: ProjectSettings, repository: Repository
) -> None:
    tool = Git(repository.clone, list_git_settings(project))
    head = tool.ls_remote("origin")["refs/heads/main"]
    assert tool.push("origin", Update("refs/heads/fix/1", head, ABSENT)) == {"refs/heads/fix/1"}
    assert tool.at(repository.clone).fetch_branch("origin", "fix/1") == head


def test_nobody_gets_the_token_who_is_not_to_have_it(
    project: ProjectSettings, repository: Repository, site: GitSite
) -> None:
    for access in ("own", "agents"):
        settings = list_git_settings(with_access(project, access))
        assert bool(settings) is (access == "agents")
    assert list_git_settings(project, for_agent=True) == ()
    with pytest.raises(RemoteUnreachableError):
        Git(repository.clone, list_git_settings(with_access(project, "own"))).ls_remote("origin")
    assert {password for _, password in site.asked} == {""}


def test_another_repository_of_the_same_server_never_gets_it(
    project: ProjectSettings, repository: Repository, site: GitSite
) -> None:
    with pytest.raises(RemoteUnreachableError):
        Git(repository.clone, list_git_settings(project)).ls_remote("theirs")
    assert site.asked
    assert {password for _, password in site.asked} == {""}


def test_the_token_is_kept_nowhere(
    project: ProjectSettings, repository: Repository, tmp_path: Path, sealed: Path
) -> None:
    store = tmp_path / "stored"
    git(repository.clone, "config", "--global", "credential.helper", f"store --file={store}")
    settings = list_git_settings(project)
    Git(repository.clone, settings).ls_remote("origin")
    assert not store.exists() or TOKEN not in store.read_text()
    assert TOKEN not in repr(settings)
    for file in (repository.clone / ".git" / "config", sealed / ".gitconfig"):
        assert TOKEN not in file.read_text()
    assert "credential" not in (repository.clone / ".git" / "config").read_text()


def test_agents_push_with_it_if_the_configuration_says_so(
    project: ProjectSettings, repository: Repository, tmp_path: Path, site: GitSite
) -> None:
    def push(access: str) -> int:
        session = session_of(with_access(project, access), tmp_path)
        agent = AgentSettings(env={"GIT_CONFIG_COUNT": "1", **OWN, "HOME": os.environ["HOME"]})
        env = make_environment(Tmux(None), session, agent)
        env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": os.environ["GIT_CONFIG_GLOBAL"]}
        assert env["GIT_CONFIG_KEY_0"] == "core.abbrev"
        line = ["git", "-C", str(repository.clone), "push", "-q", "origin", "main:fix/2"]
        return subprocess.run(line, env=env, capture_output=True, check=False).returncode

    assert push("sm") != 0
    assert TOKEN not in {password for _, password in site.asked}
    assert push("agents") == 0


OWN = {"GIT_CONFIG_KEY_0": "core.abbrev", "GIT_CONFIG_VALUE_0": "12"}
"""Settings of an agent's own."""


def session_of(project: ProjectSettings, folder: Path) -> IssueSession:
    """A session of issue 7 that was never begun."""
    from sm.config.load import load

    config = folder / "sm.yaml"
    config.write_text(f"name: harb\nrepo: {folder}\nforge: {{kind: local, path: {folder}}}\n")
    record = IssueRecord(
        name="dev-harb-7",
        provider="generic",
        cwd=folder,
        config=config,
        state_root=folder,
        created_at=0.0,
        project="harb",
        issue=7,
        title="Mend it",
        branch="fix/7",
        base="main",
        remote="origin",
        repo=project.repo,
    )
    return IssueSession(record).provide(project=Project(load(config, {}, folder), project))


ASKED = "protocol=https\nhost=codeberg.org\npath=harbor/harb.git\n"


@pytest.mark.parametrize(
    ("question", "is_answered"),
    [
        (ASKED, True),
        (ASKED.replace(".git", ""), True),
        (ASKED.replace("https", "http"), False),
        (ASKED.replace("codeberg.org", "codeberg.org.example.com"), False),
        (ASKED.replace("harbor", "mallory"), False),
        (ASKED.replace("harb.git", "harb.git/../../mallory/harb"), False),
        ("protocol=https\nhost=codeberg.org\n", False),
        *(
            (ASKED.replace("path=", f"path=mallory/x{sign}path="), False)
            for sign in ("\v", "\f", "\r", "\x1c", "\x85", "\u2028")
        ),
        ("", False),
        ("nothing\n\n", False),
    ],
)
def test_the_helper_answers_for_one_repository(
    question: str, is_answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", TOKEN)
    source = TokenSource(variable="TOKEN")
    said = answer(TokenPlace("https://codeberg.org/harbor/harb"), source, question)
    assert said == (f"username=x-access-token\npassword={TOKEN}\n" if is_answered else "")
    monkeypatch.delenv("TOKEN")
    if is_answered:
        with pytest.raises(TokenError):
            answer(TokenPlace("https://codeberg.org/harbor/harb"), source, question)


def test_a_carriage_return_from_git_ends_no_line(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOKEN": TOKEN}
    place = ("--place", "https://codeberg.org/harbor/harb", "--token-env", "TOKEN", "get")
    asked = ASKED.replace("path=", "path=mallory/x\rpath=")
    said = [
        run_sm("git-credential", *place, env=env, cwd=tmp_path, stdin=one).stdout
        for one in (ASKED, asked)
    ]
    assert said == [f"username=x-access-token\npassword={TOKEN}\n", ""]


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://api.github.com", "https://github.com/harbor/harb"),
        ("https://git.example.com/api/v3", "https://git.example.com/harbor/harb"),
        ("https://api.harbor.ghe.com", "https://harbor.ghe.com/harbor/harb"),
    ],
)
def test_git_finds_githubs_repositories_elsewhere_than_its_interface(url: str, place: str) -> None:
    assert find_place(GithubSettings(url=url, repository="harbor/harb")).url == place


def test_what_keeps_git_from_the_token_is_named(project: ProjectSettings) -> None:
    hidden = structs.replace(project.forge, git_access="agents", token_file=None, token_env="TOKEN")
    problems = problems_of(structs.replace(project, forge=hidden), "git@codeberg.org:harbor/harb")
    assert any("which alone git gets the token for" in one for one in problems)
    assert any("agents do not get the variable" in one for one in problems)
    assert not any("git_access" in one for one in problems_of(with_access(project, "own"), "x"))


def problems_of(project: ProjectSettings, url: str) -> list[str]:
    from sm.plugins.forges.gitea.entry import open_forge

    forge = open_forge(project)
    assert isinstance(forge, RestForge)
    return list(find_rest_problems(forge, project, url))


def test_settings_go_behind_those_that_are_there() -> None:
    own = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    assert add_settings(own, [("d.e", "f")]) == own | {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_1": "d.e",
        "GIT_CONFIG_VALUE_1": "f",
    }
    assert add_settings({}, ()) == {}
