from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.adapters.tmux import Pane, Tmux
from sm.adapters.tmux_start import start_session
from sm.adapters.viewers import ATTACHING_S, look_at_use
from sm.base.errors import SmError
from sm.config.load import load
from sm.sessions.attach import prepare_attachment
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.helpers import put_session, sm_yaml, wait_for
from tests.viewer import Viewer


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
        start_session(project.tmux, name, tmp_path, ["sh", "-c", f"echo this is {name}; exec cat"])
    return "dev-harb-7"


def clients(tmux: Tmux) -> list[str]:
    listing = tmux.command("list-clients", "-F", "#{session_name} #{client_readonly}")
    return sorted(listing.splitlines())


def person(tmux: Tmux, folder: Path, *args: str) -> None:
    """A person at a terminal of their own (within another tmux server) who runs `sm attach`."""
    settings = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("SM_")]
    command = [sys.executable, "-Im", "sm", "attach", *args]
    script = f"unset TMUX TMUX_PANE; exec env {shlex.join([*settings, *command])}"
    start_session(tmux, "person", folder, ["sh", "-c", script])


@pytest.mark.usefixtures("session")
def test_a_person_sees_the_session_and_no_other(project: Project, tmp_path: Path) -> None:
    person(project.tmux, tmp_path, "harb", "7")
    wait_for(lambda: clients(project.tmux) == ["dev-harb-7 0"], "the person's client")


@pytest.mark.usefixtures("session")
def test_read_only_lets_no_key_through(project: Project, tmp_path: Path) -> None:
    person(project.tmux, tmp_path, "harb", "7", "--read-only")
    wait_for(lambda: clients(project.tmux) == ["dev-harb-7 1"], "the person's client")


@pytest.mark.parametrize(("options", "is_person"), [(["-r"], False), ([], True)])
def test_the_keys_of_who_only_looks_are_nobodys_the_one_that_leaves_included(
    project: Project, session: str, tmp_path: Path, options: list[str], is_person: bool
) -> None:
    argv = [sys.executable, "-Im", "sm", "attach", "harb", "7", *options]
    viewer, tmux = Viewer(argv, cwd=tmp_path), project.tmux

    def pressed() -> bool:
        viewer.type("x")
        pane = find_pane(tmux, session)
        return pane.viewers > 0 and pane.keyed_at > pane.attached_at + ATTACHING_S

    try:
        wait_for(pressed, "keys that are none of the terminal's own", every_s=0.3)
        viewer.type("\x02d")
        wait_for(viewer.has_ended, "the end of sm attach")
    finally:
        viewer.close()
    use = look_at_use(tmux, find_pane(tmux, session))
    assert (use.attached, use.typed_at > 0) == (False, is_person)


def find_pane(tmux: Tmux, session: str) -> Pane:
    pane = tmux.pane(session)
    assert pane
    return pane


@pytest.mark.usefixtures("session")
def test_within_tmux_it_is_one_client_within_the_other(project: Project, tmp_path: Path) -> None:
    home = start_session(project.tmux, "home", tmp_path, ["sh"])
    for place in ("/tmp/tmux-1/other", project.tmux.socket_path):
        env = {"TMUX": f"{place},1,0", "TMUX_PANE": home.id, "HOME": "/h"}
        way = prepare_attachment(project, 7, env)
        assert (way.argv, way.env) == (project.tmux.attach_argv("dev-harb-7"), {"HOME": "/h"})
        assert "press the prefix twice" in way.note
        assert prepare_attachment(project, 7, env, read_only=True).argv[-1] == "-r"


@pytest.mark.usefixtures("session")
def test_a_terminal_does_not_show_itself_within_itself(project: Project) -> None:
    pane = project.tmux.pane("dev-harb-7")
    assert pane
    env = {"TMUX": f"{project.tmux.socket_path},1,0", "TMUX_PANE": pane.id}
    with pytest.raises(SmError, match="you are in the terminal of 'dev-harb-7'"):
        prepare_attachment(project, 7, env)


@pytest.fixture
def at_shell(project: Project, session: str, tmp_path: Path) -> Pane:
    """A person's own session, whose shell has run `sm attach`; detach-on-destroy is off for all."""
    home = start_session(project.tmux, "home", tmp_path, ["env", "PS1=ready ", "sh"])
    project.tmux.command("set-option", "-g", "detach-on-destroy", "off")
    # As an older version has left it.
    project.tmux.command("set-option", "-u", "-t", f"={session}:", "detach-on-destroy")
    settings = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("SM_")]
    command = shlex.join(["env", *settings, sys.executable, "-Im", "sm", "attach", "harb", "7"])
    project.tmux.command("send-keys", "-t", home.id, command, "Enter")
    wait_for(lambda: clients(project.tmux) == ["dev-harb-7 0"], "the person's client")
    return home


def end(project: Project, session: str) -> None:
    pane = project.tmux.pane(session)
    assert pane
    project.tmux.kill(session, pane.pid)


def test_what_is_typed_beyond_the_session_reaches_no_shell(
    project: Project, session: str, at_shell: Pane, tmp_path: Path
) -> None:
    tmux, ran = project.tmux, tmp_path / "ran"
    tmux.command("send-keys", "-t", at_shell.id, f"touch {ran}", "Enter")
    wait_for(lambda: "touch" in tmux.capture(f"={session}:"), "the words at the agent")
    end(project, session)
    tmux.command("send-keys", "-t", at_shell.id, f"touch {ran}", "Enter", f"touch {ran}", "Enter")
    wait_for(lambda: "has ended. Press Enter" in tmux.capture(at_shell.id), "the word of the end")
    assert clients(tmux) == []
    tmux.command("send-keys", "-t", at_shell.id, f"touch {ran}", "Enter")

    def is_back() -> bool:
        tmux.command("send-keys", "-t", at_shell.id, "Enter")
        return tmux.capture(at_shell.id).rstrip().endswith("ready")

    wait_for(is_back, "the shell, after Enter alone", every_s=1.2)
    assert not ran.exists()


def test_a_person_who_detaches_is_back_at_once(
    project: Project, session: str, at_shell: Pane
) -> None:
    tmux = project.tmux
    tmux.command("send-keys", "-t", at_shell.id, "C-b", "d")
    wait_for(lambda: tmux.capture(at_shell.id).rstrip().endswith("ready"), "the shell")
    assert "has ended" not in tmux.capture(at_shell.id)
    assert tmux.pane(session)


def test_a_client_that_is_suspended_gives_the_shell_back_and_goes_on(
    project: Project, session: str, at_shell: Pane
) -> None:
    tmux = project.tmux
    tmux.command("send-keys", "-t", at_shell.id, "C-b", "C-z")
    wait_for(lambda: tmux.capture(at_shell.id).rstrip().endswith("ready"), "the shell")
    tmux.command("send-keys", "-t", at_shell.id, "fg", "Enter")
    wait_for(lambda: f"this is {session}" in tmux.capture(at_shell.id), "the terminal again")
    end(project, session)
    wait_for(lambda: "has ended. Press Enter" in tmux.capture(at_shell.id), "the word of the end")


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
