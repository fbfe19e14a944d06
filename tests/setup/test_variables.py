"""What a shell has and agents do not see is named before it costs an evening."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from sm.__main__ import run
from sm.config.schema import AgentSettings
from sm.personal import lifecycle
from sm.setup.variables import list_hidden, list_missing_folders
from tests.company import Company
from tests.helpers import Repository

SHELL = {
    "ANTHROPIC_API_KEY": "secret-1",
    "CLAUDE_CONFIG_DIR": "/x",
    "IS_SANDBOX": "1",
    "https_proxy": "http://secret-2@proxy",
    "NO_PROXY": "localhost",
    "NODE_EXTRA_CA_CERTS": "/ca.pem",
}


def test_variables_for_agents_are_named() -> None:
    others = {"EDITOR": "vi", "AWS_PROFILE": "x", "ALL_PROXY": "", "CLAUDE_SESSION_MANAGER_ID": "s"}
    assert list_hidden(AgentSettings(), SHELL | others) == sorted(SHELL)


def test_what_an_agent_is_given_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-1")
    agent = AgentSettings(pass_env=("ANTHROPIC_API_KEY",), env={"IS_SANDBOX": "1"})
    assert not {"ANTHROPIC_API_KEY", "IS_SANDBOX"} & set(list_hidden(agent, SHELL))


def test_what_a_client_sets_for_its_own_children_is_not_named() -> None:
    inside = SHELL | {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
    assert not [name for name in list_hidden(AgentSettings(), inside) if name.startswith("CLAUDE")]


def test_a_cloud_s_access_counts_where_the_client_uses_it() -> None:
    shell = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "x", "GOOGLE_X": "y"}
    assert list_hidden(AgentSettings(), shell) == ["AWS_PROFILE", "CLAUDE_CODE_USE_BEDROCK"]


def test_missing_folders_of_path_are_found() -> None:
    assert list_missing_folders("/usr/bin:/bin", {"PATH": "/bin::/opt/x:/usr/bin"}) == ["/opt/x"]


def test_new_names_what_its_agent_does_not_see_and_no_value(company: Company) -> None:
    done = company.sm("new", "--provider", "mute", env=SHELL)
    assert f"agents do not see {', '.join(sorted(SHELL))} of your environment" in done.stderr
    assert "agent.pass_env: [ANTHROPIC_API_KEY," in done.stderr
    assert "secret" not in done.stderr + done.stdout


def _projects(company: Company, **pass_env: list[str]) -> None:
    machine = yaml.safe_load(company.config.read_text())
    projects = []
    for name, passed in pass_env.items():
        (company.folder / name).mkdir()
        forge = {"kind": "local", "path": f"{name}-forge"}
        agent = {"pass_env": passed}
        projects.append({"name": name, "repo": name, "forge": forge, "agent": agent})
    company.config.write_text(yaml.safe_dump(machine | {"projects": projects}))


@pytest.mark.parametrize(
    ("where", "expected"),
    [(".", {"FOR_BOTH"}), ("one", {"FOR_BOTH", "FOR_ONE"}), ("one-worktrees/one-3", {"FOR_ONE"})],
)
def test_new_uses_the_pass_env_of_the_configuration(
    company: Company, where: str, expected: set[str]
) -> None:
    _projects(company, one=["FOR_ONE", "FOR_BOTH"], two=["FOR_TWO", "FOR_BOTH"])
    folder = company.folder / where
    folder.mkdir(parents=True, exist_ok=True)
    env = {"FOR_ONE": "1", "FOR_TWO": "2", "FOR_BOTH": "3", "FOR_NONE": "4"}
    done = company.sm("new", "--provider", "mute", "--dir", str(folder), env=env)
    launched = company.session(done.stdout.split()[0]).dir.launch_env.read_text().split("\0")
    seen = {entry.split("=")[0] for entry in launched if entry.startswith("FOR_")}
    assert seen >= expected
    assert not seen & {"FOR_TWO", "FOR_NONE"}


def test_init_names_it_and_writes_what_is_to_be_passed(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in SHELL.items():
        monkeypatch.setenv(name, value)
    args = ["init", "--yes", "--agent", "cat", "--repo", str(repository.clone)]
    assert run([*args, "--pass-env", "IS_SANDBOX", "--pass-env", "https_proxy"]) == 0
    said = capsys.readouterr().out
    assert "agents do not see ANTHROPIC_API_KEY, CLAUDE_CONFIG_DIR, NODE_EXTRA_CA_CERTS" in said
    assert "IS_SANDBOX" not in said
    assert "secret" not in said
    written = Path(os.environ["HOME"], ".config", "sm", "clone.yaml").read_text()
    assert yaml.safe_load(written)["agent"]["pass_env"] == ["IS_SANDBOX", "https_proxy"]


def test_an_agent_that_ends_at_once_is_an_error_of_new_with_its_last_line(
    company: Company,
) -> None:
    line = "sh -c 'echo before; echo cannot be used with root privileges >&2; exit 1'"
    done = company.sm("new", "--name", "ann", "--command", line, code=1)
    assert 'its agent ended at once: "cannot be used with root privileges"' in done.stderr
    assert done.stdout == ""
    assert company.sm("children", "--json").stdout.strip() == "[]"


@pytest.mark.parametrize("provider", ["peer", "deaf"])
def test_an_agent_that_gives_a_sign_is_not_waited_for(
    company: Company, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    ident = company.sm("new", "--provider", provider).stdout.split()[0]
    monkeypatch.setattr(lifecycle, "SETTLE_S", 3600.0)
    lifecycle.await_first_signs(company.session(ident))
