from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.adapters.forge.local.setup import create
from sm.base import plugin
from sm.base.plugin import Registry
from sm.config.load import load
from sm.config.text import format_yaml, list_effective
from sm.store.paths import Root
from tests.helpers import Repository, git, make_repository

CONFIG = """\
name: harb
repo: clone
forge: {{kind: local, path: forge}}
agent: {{command: "cat -u", env: {{A: "1"}}}}
{more}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = make_repository(tmp_path)
    create(tmp_path / "forge", repository.bare)
    return repository


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SM_CONFIG", str(tmp_path / "sm.yaml"))
    return write(tmp_path)


def write(folder: Path, more: str = "") -> Path:
    path = folder / "sm.yaml"
    path.write_text(CONFIG.format(more=more))
    return path


@pytest.fixture
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sections of plugins are shown, too; then a file that has none is of another shape."""
    monkeypatch.setattr(plugin, "_registry", Registry(list))


@pytest.mark.usefixtures("no_plugins")
def test_what_is_shown_is_the_same_configuration_again(config: Path, tmp_path: Path) -> None:
    write(tmp_path, "ci: {timeout: 90m, command: 'a \"b\" # ❯'}\ntrusted: [ada]")
    before = load(config, {}, tmp_path)
    again = tmp_path / "again.yaml"
    again.write_text(format_yaml(list_effective(before)))
    after = load(again, {}, tmp_path)
    assert (after.projects, after.state_root) == (before.projects, before.state_root)
    assert "timeout: 1h30m\n" in again.read_text()


@pytest.mark.usefixtures("no_plugins")
def test_thresholds_of_the_machine_and_of_projects_are_the_same_again(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    own = "context_monitor: {warning_percentage: 20}\nhandoff_cycle: {timeout: 90s}"
    (folder / "harb.yaml").write_text(CONFIG.format(more=own))
    (folder / "zoo.yaml").write_text(CONFIG.format(more="").replace("harb", "zoo"))
    (folder / "machine.yaml").write_text("context_monitor: {critical_percentage: 80}\n")
    before = load(folder, {}, tmp_path)
    assert before.context_monitor.warning_percentage == 50
    again = tmp_path / "again.yaml"
    again.write_text(format_yaml(list_effective(before)))
    after = load(again, {}, tmp_path)
    assert list_effective(after) == list_effective(before)
    assert after.projects == before.projects


@pytest.mark.usefixtures("config")
def test_show_prints_every_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["config", "show"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"# {tmp_path}/sm.yaml\nstate_root: ")
    assert "  poll_interval: 1m\n" in out
    assert run(["config", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["source"] == f"{tmp_path}/sm.yaml"
    assert shown["projects"][0]["review"] == {"required": True, "timeout": "3h", "max_rounds": 5}


@pytest.mark.usefixtures("config", "repository", "root")
def test_check_says_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check"]) == 0
    assert capsys.readouterr().out == "harb: OK\n"
    assert run(["config", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"harb": []}


@pytest.mark.usefixtures("config", "root")
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("remote: upstream", "'{0}/clone' has no remote 'upstream'"),
        (
            "primary_branch: trunk",
            "remote 'origin' of '{0}/clone' has no branch 'trunk': run git push",
        ),
        ("remote: other", "remote 'other' of '{0}/clone' is not '{0}/hub.git', the repository of"),
        ("escalation: {vault: v}", "'escalation.vault' is '{0}/v', which is no directory"),
        ("runner: shs", "'runner' is 'shs', which is no runner: did you mean 'ssh'?"),
        ("runners: {heavy: x}", "'runners.heavy' is 'x', which is no runner: there are 'local', "),
    ],
)
def test_check_names_what_is_wrong(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    repository: Repository,
    more: str,
    expected: str,
) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = make_repository(tmp_path / "elsewhere")
    git(repository.clone, "remote", "add", "other", str(other.bare))
    write(tmp_path, more)
    assert run(["config", "check"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert expected.format(tmp_path) in lines[0]


@pytest.mark.usefixtures("root")
def test_check_tells_all_problems_at_once(
    capsys: pytest.CaptureFixture[str],
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config.write_text(config.read_text().replace("cat -u", "no-such-agent --fast"))
    monkeypatch.setenv("SM_STATE_ROOT", str(tmp_path / "gone"))
    assert run(["config", "check"]) == 2
    assert capsys.readouterr().out.splitlines() == [
        f"machine: 'state_root' is '{tmp_path}/gone', which is no directory: create it",
        f"harb: 'repo' is '{tmp_path}/clone', which is no directory: clone the repository there",
        f"harb: there is no forge in '{tmp_path}/forge': run 'sm init' to set one up",
        "harb: agent 'no-such-agent' is not on PATH: install it, or set 'agent.command'",
    ]


@pytest.mark.usefixtures("config", "root")
def test_check_sees_that_the_folder_is_no_repository(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(repository.clone / ".git")
    assert run(["config", "check"]) == 2
    assert "cannot be used as a repository" in capsys.readouterr().out


@pytest.mark.usefixtures("config", "root")
def test_check_sees_that_the_remote_is_gone(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    git(repository.clone, "remote", "set-url", "origin", str(repository.bare) + "-gone")
    assert run(["config", "check"]) == 2
    assert "cannot reach remote 'origin'" in capsys.readouterr().out


def test_check_of_an_unusable_file_is_one_line(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("ci: [")
    assert run(["config", "check"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"sm: cannot parse '{config}', line 2, column 1: ")


# A file that holds nothing but what is so for the whole machine


@pytest.fixture
def machine(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "machine.yaml"
    path.write_text("context_monitor:\n  enabled: true\n  warning_percentage: 40\n")
    monkeypatch.setenv("SM_CONFIG", str(path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.mark.usefixtures("machine")
def test_a_file_without_a_project_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check"]) == 0
    assert capsys.readouterr().out == "machine: OK\n"
    assert run(["config", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"machine": []}


def test_what_is_wrong_in_a_file_without_a_project_is_told(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.write_text("context_monitor: {warning_percentage: 400}\n")
    assert run(["config", "check"]) == 2
    assert "'context_monitor.warning_percentage'" in capsys.readouterr().err
    machine.write_text("profiles: {odd: {like: none}}\n")
    assert run(["config", "check"]) == 2
    assert capsys.readouterr().out.startswith("machine: ")


def test_a_file_without_a_project_is_shown_and_is_the_same_again(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "show"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"# {machine}\n")
    assert "  warning_percentage: 40\n" in shown
    machine.write_text(shown)
    assert run(["config", "show"]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.usefixtures("machine")
def test_doctor_takes_a_file_without_a_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    assert "machine.yaml': no project" in capsys.readouterr().out


@pytest.mark.usefixtures("machine")
def test_what_needs_a_project_says_that_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["issue", "list"]) == 2
    assert "no project in 'machine.yaml': run 'sm init' to add one" in capsys.readouterr().err
