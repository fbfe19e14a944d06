from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.adapters.tmux import Tmux
from sm.config.load import load
from sm.errors import SmError
from sm.sessions.attach import prepare_attachment
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import put_session, sm_yaml, wait_for


@pytest.fixture
def project(
    tmp_path: Path, root: Root, tmux_socket: str, monkeypatch: pytest.MonkeyPatch
) -> Project:
    assert root.path == tmp_path / "state"
    path = sm_yaml(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(path))
    config = load(path, os.environ, tmp_path)
    assert config.tmux_socket == tmux_socket
    return Project(config, config.projects[0])


@pytest.fixture
def session(project: Project, tmp_path: Path) -> str:
    """The terminal of issue 7, and one whose name begins alike."""
    for name in ("dev-harb-77", "dev-harb-7"):
        project.tmux.start(name, tmp_path, ["sh", "-c", f"echo this is {name}; exec cat"])
    return "dev-harb-7"


def clients(tmux: Tmux) -> list[str]:
    listing = tmux.command("list-clients", "-F", "#{session_name} #{client_readonly}")
    return sorted(listing.splitlines())


def person(tmux: Tmux, folder: Path, *args: str) -> None:
    """A person at a terminal of their own (within another tmux server) who runs `sm attach`."""
    settings = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("SM_")]
    command = [sys.executable, "-Im", "sm", "attach", *args]
    script = f"unset TMUX TMUX_PANE; exec env {shlex.join([*settings, *command])}"
    tmux.start("person", folder, ["sh", "-c", script])


@pytest.mark.usefixtures("session")
def test_a_person_sees_the_session_and_no_other(project: Project, tmp_path: Path) -> None:
    person(project.tmux, tmp_path, "harb", "7")
    wait_for(lambda: clients(project.tmux) == ["dev-harb-7 0"], "the person's client")


@pytest.mark.usefixtures("session")
def test_read_only_lets_no_key_through(project: Project, tmp_path: Path) -> None:
    person(project.tmux, tmp_path, "harb", "7", "--read-only")
    wait_for(lambda: clients(project.tmux) == ["dev-harb-7 1"], "the person's client")


@pytest.mark.usefixtures("session")
def test_within_the_agents_own_tmux_the_client_is_switched_over(
    project: Project, tmp_path: Path
) -> None:
    path = project.tmux.command("display-message", "-p", "#{socket_path}").strip()
    inside = {"TMUX": f"{path},1,0", "TMUX_PANE": "%0", "HOME": "/h"}
    way = prepare_attachment(project, 7, inside)
    assert way.argv[-3:] == ["switch-client", "-t", "=dev-harb-7"]
    assert way.env == inside
    # A client that looks at one session finds itself at the other.
    home = project.tmux.start("home", tmp_path, ["sh"])
    outer = ["sh", "-c", f"unset TMUX; exec {shlex.join(project.tmux.attach_argv('home'))}"]
    project.tmux.start("person", tmp_path, outer)
    wait_for(lambda: clients(project.tmux) == ["home 0"], "the client")
    settings = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("SM_")]
    command = shlex.join(["env", *settings, sys.executable, "-Im", "sm", "attach", "harb", "7"])
    project.tmux.command("send-keys", "-t", home.id, command, "Enter")
    wait_for(lambda: clients(project.tmux) == ["dev-harb-7 0"], "the switch")


@pytest.mark.usefixtures("session")
def test_within_another_tmux_it_is_one_client_within_the_other(project: Project) -> None:
    env = {"TMUX": "/tmp/tmux-1/other,1,0", "TMUX_PANE": "%0", "HOME": "/h"}
    way = prepare_attachment(project, 7, env)
    assert (way.argv, way.env) == (project.tmux.attach_argv("dev-harb-7"), {"HOME": "/h"})
    assert "press the prefix twice" in way.note
    assert prepare_attachment(project, 7, env, read_only=True).argv[-1] == "-r"


def test_a_terminal_that_is_gone_is_a_clear_error(project: Project) -> None:
    with pytest.raises(SmError, match="there is no session 'dev-harb-7': sm status lists"):
        prepare_attachment(project, 7, {})
    put_session(project, 7)
    with pytest.raises(
        SmError, match=r"the terminal of 'dev-harb-7' is gone: .* sm recover harb 7"
    ):
        prepare_attachment(project, 7, {})


@pytest.mark.usefixtures("project")
def test_without_a_terminal_there_is_nothing_to_attach_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["attach", "harb", "7"]) == 2
    assert "attach needs a terminal" in capsys.readouterr().err
