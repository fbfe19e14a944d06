from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sm.__main__ import run
from sm.adapters import procfs
from sm.adapters.forge.local import forge
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.config.load import load
from sm.issues.rules.leftover import MOMENT_S
from sm.issues.work import claim
from sm.plugins.chat.threads.handoffs import open_bridge
from sm.plugins.chat.threads.records import HandoffClient
from sm.plugins.doctor import leftovers, machine
from sm.plugins.doctor.checks import examine
from sm.plugins.doctor.machine import Installation
from sm.sessions.project import Project
from sm.setup import install_hooks
from sm.setup.finding import Finding, Level
from sm.store import lock
from sm.store.paths import Root
from tests.chance import dice
from tests.company import Company
from tests.helpers import (
    an_issue,
    git,
    kill_monitor,
    make_repository,
    put_session,
    put_snapshot,
    put_tick,
    sm_yaml,
    wait_for,
)
from tests.real.client import seal


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put a program on PATH that prints a version."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, body: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)

    return put


@pytest.fixture
def project(
    tmp_path: Path,
    root: Root,
    tmux_socket: str,
    programs: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """An installation in which all is well."""
    assert root.path == tmp_path / "state"
    repository = make_repository(tmp_path)
    forge.create(tmp_path / "forge", repository.bare)
    programs("claude", "echo 2.1.0 '(Claude Code)'")
    path = sm_yaml(tmp_path, agent={"env": {"IS_SANDBOX": "1"}})  # the tests may run as root
    monkeypatch.setenv("SM_CONFIG", str(path))
    config = load(path, os.environ, tmp_path)
    assert config.tmux_socket == tmux_socket
    seal(Path(os.environ["HOME"]), repository.clone)
    project = Project(config, config.projects[0])
    put_snapshot(project)
    return project


def findings(project: Project) -> list[Finding]:
    return list(examine(project.config, project.root, project.config.tmux_socket))


def wrong(project: Project) -> list[tuple[str, str, str]]:
    return [(f.level, f.what, f.advice) for f in findings(project) if f.level is not Level.OK]


def test_a_sound_installation_is_all_ok(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wrong(project) == []
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    for line in (
        "ok    machine: tmux ",
        "ok    machine: git ",
        "ok    machine: bash ",
        "ok    machine: python 3.",
        "ok    harb: agent '",
        "2.1.0 (Claude Code)",
        "ok    harb: forge: 0 issues, 0 pull requests",
        "ok    harb: no sessions",
    ):
        assert line in out


def test_json_lists_what_was_found(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(Path(project.settings.forge.place))
    assert run(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {one["level"] for one in found} == {"ok", "fail"}
    assert {one["where"] for one in found} == {"machine", "harb"}
    assert [one["what"] for one in found if one["level"] == "fail"] == [
        f"there is no forge in '{Path(project.settings.forge.place)}': run 'sm init' to set one up"
    ]


def test_a_session_is_tried_on_a_tmux_server_that_runs(tmux: Tmux, root: Root) -> None:
    here = Installation(root, tmux)
    tmux.command("start-server", ";", "new-session", "-d", "-s", "person", "cat")
    said = [finding.what for finding in machine.check_tmux_server(here)]
    assert said[1:] == ["a tmux session takes messages, and ends"]
    tmux.command("set-hook", "-g", "after-set-option", "select-pane -d")
    (_, tried) = machine.check_tmux_server(here)
    assert (tried.level, "your tmux configuration" in tried.advice) == (Level.FAIL, True)
    tmux.command("set-hook", "-gu", "after-set-option")
    assert list(tmux.panes()) == ["person"]


@pytest.mark.usefixtures("root", "tmux_socket")
def test_without_a_configuration_it_still_looks_at_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("fail  machine: no configuration: ")
    assert "ok    machine: tmux " in out
    (tmp_path / "sm.yaml").write_text("name: harb\nrepoo: x\n")
    assert run(["doctor"]) == 1
    assert "fail  machine: unknown key 'repoo'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "says", "what"),
    [
        ("tmux", "tmux 3.1c", "tmux 3.1c is too old"),
        ("git", "git version 2.37.9", "git 2.37.9 is too old"),
        ("bash", "GNU bash, version 5.0.17(1)-release", "bash 5.0.17(1)-release is too old"),
    ],
)
def test_an_old_program_is_named(
    root: Root, programs: Callable[[str, str], None], name: str, says: str, what: str
) -> None:
    programs(name, f"echo '{says}'")
    found = {f.what: f.level for f in machine.check_programs(Installation(root, Tmux()))}
    assert found[what] is Level.FAIL
    assert sorted(found.values()) == ["fail", "ok", "ok"]


def test_a_new_or_silent_program_is_no_failure(
    root: Root, programs: Callable[[str, str], None]
) -> None:
    programs("tmux", "echo tmux next-3.10")
    programs("git", "echo built by hand")
    levels = [f.level for f in machine.check_programs(Installation(root, Tmux()))]
    assert levels == [Level.OK, Level.WARN, Level.OK]


def test_a_missing_program_is_named(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = list(machine.check_programs(Installation(root, Tmux())))
    assert [f.level for f in found] == [Level.FAIL] * 3
    assert "'tmux' is not installed" in found[0].what
    assert found[0].advice == "install tmux 3.2 or newer"


def test_a_state_root_that_others_can_change_is_named(project: Project, root: Root) -> None:
    root.path.chmod(0o777)
    assert wrong(project)[0][1] == f"others may replace files in the state root '{root.path}'"
    root.path.chmod(0o1777)
    assert wrong(project) == []
    root.private.chmod(0o755)
    assert (Level.FAIL, f"'{root.private}' is open to other users") == wrong(project)[0][:2]
    root.private.chmod(0o500)
    assert (Level.FAIL, f"'{root.private}' has mode 500") == wrong(project)[0][:2]
    root.private.chmod(0o700)


def test_a_missing_state_root_is_named(project: Project, root: Root) -> None:
    shutil.rmtree(root.path)
    assert wrong(project)[0][1:] == (f"the state root '{root.path}' is no directory", "create it")


def test_the_age_at_which_a_system_clears_its_tmp_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = tmp_path / "etc", tmp_path / "usr"
    for folder in (ours, theirs):
        folder.mkdir()
    (theirs / "tmp.conf").write_text("# comment\nq /tmp 1777 root root 10d\n")
    (theirs / "x11.conf").write_text("D! /tmp/.X11-unix 1777 root root 10d\nq /tmp 1777 root\n")
    monkeypatch.setattr(machine, "AGING", (ours, theirs))
    assert list(machine._ages(Path("/tmp"))) == [(theirs / "tmp.conf", "10d")]
    (ours / "tmp.conf").write_text("q /tmp 1777 root root -\n")
    assert list(machine._ages(Path("/tmp"))) == []


def test_a_file_of_the_system_that_cannot_be_read_ends_no_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone.conf").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.conf").mkdir()
    (tmp_path / "tmp.conf").write_text("q /tmp 1777 root root 10d\n")
    monkeypatch.setattr(machine, "AGING", (tmp_path,))
    assert list(machine._ages(Path("/tmp"))) == [(tmp_path / "tmp.conf", "10d")]


def test_an_open_quote_in_a_profile_s_command_is_told_once(
    project: Project, tmp_path: Path
) -> None:
    sm_yaml(tmp_path, agent={"profile": "odd"}, profiles={"odd": {"command": "odd 'x"}})
    config = load(project.config.source, os.environ, tmp_path)
    [(level, what, _)] = wrong(Project(config, config.projects[0]))
    assert (level, what) == (
        "fail",
        "cannot read the agent's command 'odd 'x': no closing quotation",
    )


def test_an_agent_that_cannot_tell_its_version_is_named(
    project: Project, programs: Callable[[str, str], None]
) -> None:
    programs("claude", "exit 1")
    [(level, what, _)] = wrong(project)
    assert (level, what.endswith("/claude --version' failed")) == ("fail", True)


def test_an_unknown_agent_is_not_started_to_ask_for_its_version(
    project: Project, tmp_path: Path, programs: Callable[[str, str], None]
) -> None:
    programs("my-agent", f"touch '{tmp_path}/started'")
    sm_yaml(tmp_path, agent={"command": "my-agent --go"})
    config = load(project.config.source, os.environ, tmp_path)
    assert wrong(Project(config, config.projects[0])) == []
    assert not (tmp_path / "started").exists()


def test_a_half_edited_file_of_the_forge_is_a_warning(project: Project) -> None:
    project.forge.issues.add("One", author="ada")
    (Path(project.settings.forge.place) / "issues" / "0001.md").write_text("---\nnumber: [\n")
    [(level, what, _)] = wrong(project)
    assert level == "warn"
    assert "0001.md" in what


def test_sessions_without_a_monitor_and_damaged_ones_are_named(project: Project) -> None:
    for _ in range(3):
        project.forge.issues.add("Mend it", author="ada")
    watched, alone = put_session(project, 1), put_session(project, 2)
    assert alone
    put_session(project, 3).dir.identity.write_text("{")
    with lock.hold(watched.dir.monitor_lock):
        found = wrong(project)
    assert [level for level, _, _ in found] == ["fail", "warn"]
    assert "is damaged" in found[0][1]
    assert found[1][1] == "session 'dev-harb-2' has no monitor"


def test_a_damaged_database_of_handoffs_is_named_and_left_alone(project: Project) -> None:
    path = project.config.bridge_database
    assert any(f.what == f"'{path}' is made with the first handoff" for f in findings(project))
    with open_bridge(path) as handoffs:
        handoffs.create("t", "x" * 50_000, client=HandoffClient.CHAT)
    assert any(f.what == f"handoffs in '{path}'" for f in findings(project))
    content = bytearray(path.read_bytes())
    content[-8192:] = dice(1).randbytes(8192)
    path.write_bytes(content)
    [(level, what, _)] = wrong(project)
    assert (level, what.partition(":")[0]) == (Level.FAIL, f"'{path}' is damaged")
    assert path.read_bytes() == content


def test_what_sessions_left_behind_is_named(project: Project, tmp_path: Path) -> None:
    for _ in range(7):
        project.forge.issues.add("Mend it", author="ada")
    put_session(project, 3)
    start_session(project.tmux, "dev-harb-3", tmp_path, ["sleep", "600"])
    start_session(project.tmux, "dev-harb-4", tmp_path, ["sleep", "600"])
    start_session(project.tmux, "dev-harb-4x", tmp_path, ["sleep", "600"])
    claim.claim(project.git, project.settings, 5, project.root)
    claim.claim(project.git, project.settings, 3, project.root)
    claim.claim(project.git, project.settings, 6, Root(tmp_path / "of somebody else"))
    git(
        project.settings.repo,
        "worktree",
        "add",
        "-q",
        "-b",
        "fix/7",
        str(project.settings.worktree(7)),
    )
    with lock.hold(project.root.session("dev-harb-3").monitor_lock):
        found = wrong(project)
    assert [what for _, what, _ in found] == [
        "tmux session 'dev-harb-4' has no record",
        "issue #5 is claimed by us and has no session",
        f"a worktree of issue #7 was kept: '{project.settings.worktree(7)}'",
    ]
    assert f"tmux -L {project.config.tmux_socket} kill-session -t '=dev-harb-4'" in found[0][2]
    assert found[1][2].endswith("push origin :refs/sm/claims/5")


def test_a_dev_poll_that_does_not_run_is_named(project: Project) -> None:
    put_tick(project, ago_s=540)
    put_snapshot(project)
    assert wrong(project) == [], "nothing waits for it"
    put_snapshot(project, an_issue(3, "backlog"))
    what = "no dev-poll has run for 9m, and there is work for it"
    assert wrong(project)[0][:2] == (Level.FAIL, what)
    put_tick(project)
    assert wrong(project) == []
    put_tick(project, error="no route to the forge")
    assert wrong(project)[0][1] == "the last tick of dev-poll failed: no route to the forge"


def test_a_dev_poll_that_never_ran_is_named(project: Project) -> None:
    project.directory.snapshot.unlink()
    assert wrong(project)[0][1] == "dev-poll has never run"


def test_nothing_is_changed(project: Project) -> None:
    put_session(project, 3)
    before = {path: path.lstat().st_mtime_ns for path in project.root.path.rglob("*")}
    findings(project)
    assert {path: path.lstat().st_mtime_ns for path in project.root.path.rglob("*")} == before


def test_what_an_agent_that_has_ended_left_running_is_named_and_ended(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"SM_SESSION_DIR": str(root.session("dev-harb-7").path)}
    monkeypatch.setattr(procfs, "measure_age", lambda _: MOMENT_S)
    look = Installation(root, Tmux("none"))
    with subprocess.Popen(["sleep", "206"], env=env) as tool:
        wait_for(lambda: list(leftovers.check_left_running(look)), "it")
        (found,) = leftovers.check_left_running(look)
        assert found.level is Level.WARN
        assert f"{tool.pid} (sleep)" in found.what
        assert "'dev-harb-7'" in found.what
        assert found.fix is not None
        assert found.fix.make() == ""
        assert tool.wait() < 0
        assert found.fix.make() == "it has ended by itself"
    assert list(leftovers.check_left_running(look)) == []


def test_what_your_shell_has_and_agents_do_not_see_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.forge.issues.add("Mend it", author="ada")
    session = put_session(project, 1)
    session.dir.launch_env.write_bytes(b"PATH=/usr/bin:/bin\0TOKEN=secret\0")
    session.dir.launch_env.chmod(0o600)
    with lock.hold(session.dir.monitor_lock):
        monkeypatch.setenv("PATH", f"/opt/tools:{os.environ['PATH']}")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
        told = {what: advice for _, what, advice in wrong(project)}
    key = "agents do not see ANTHROPIC_API_KEY of your environment"
    assert "agent.pass_env: [ANTHROPIC_API_KEY]" in told.pop(key)
    ((what, advice),) = told.items()
    assert what.startswith("the PATH of session 'dev-harb-1' lacks /opt/tools, ")
    assert "set PATH in agent.env" in advice
    assert "secret" not in what + advice


def test_the_questions_of_a_first_start_are_foreseen(project: Project) -> None:
    home, repo = Path(os.environ["HOME"]), project.settings.repo
    shutil.rmtree(home / ".claude")
    (home / ".claude.json").unlink()
    ((_, what, advice),) = wrong(project)
    assert what == (
        f"the agent will ask how it looks, and to log in, and whether '{repo}' is trusted, "
        "and whether permissions may be skipped"
    )
    assert advice.endswith(f"cd {repo} && claude --dangerously-skip-permissions")
    seal(home, repo.parent)  # what is below a trusted folder is trusted
    assert wrong(project) == []
    (home / ".claude.json").write_text("{ half")
    ((_, what, _),) = wrong(project)
    assert f"what to do about '{home / '.claude.json'}'" in what


def _with_ci(project: Project, command: str) -> None:
    text = Path(project.config.source).read_text()
    Path(project.config.source).write_text(text + f"ci: {{command: '{command}', timeout: 20s}}\n")


def test_ci_is_run_only_where_that_is_asked_for(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = tmp_path / "ran"
    _with_ci(project, f'pwd >{ran}; test -z "$ANTHROPIC_API_KEY" && git status --porcelain')
    assert run(["doctor"]) == 0
    assert "sm doctor --ci runs it once on the primary branch" in capsys.readouterr().out
    assert not ran.exists()
    assert run(["doctor", "--ci"]) == 0
    assert "ok    harb: CI passes on 'main', in " in capsys.readouterr().out
    place = Path(ran.read_text().strip())
    assert place.is_relative_to(project.directory.ci)
    assert not place.exists()


def test_a_ci_command_that_fails_on_the_primary_branch_is_named(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    _with_ci(project, "echo no such zebra; exit 3")
    assert run(["doctor", "--ci"]) == 1
    out = capsys.readouterr().out
    assert "fail  harb: CI: failure on 'main' (echo no such zebra; exit 3): no such zebra" in out
    assert "mend 'ci.command', or the branch" in out
    assert run(["doctor", "--ci", "--probe"]) == 2


def test_a_ci_command_that_hangs_is_ended_in_time(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(project.config.source).read_text()
    Path(project.config.source).write_text(text + "ci: {command: sleep 1000, timeout: 1s}\n")
    assert run(["doctor", "--ci"]) == 1
    assert "stopped after 1 s, the project's CI timeout" in capsys.readouterr().out


def test_personal_hooks_that_lead_nowhere_are_installed_anew_and_nobody_is_given_any(
    project: Project,
) -> None:
    path = install_hooks.default_settings(os.environ)
    before = path.read_bytes() if path.exists() else b""
    assert wrong(project) == []  # none is installed
    install_hooks.install(path)
    assert wrong(project) == []
    path.write_text(path.read_text().replace("/lib/hooks/", "/lib/that-was-moved/"))
    (found,) = [one for one in findings(project) if "some are missing" in one.what]
    assert "SessionStart" in found.what
    assert found.fix is not None
    assert found.fix.make() == ""
    assert wrong(project) == []
    install_hooks.uninstall(path)
    assert (path.read_bytes() if path.exists() else b"") == before


def test_session_of_a_person_without_a_monitor_gets_one(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    kill_monitor(session)
    here = Installation(company.root, session.tmux)
    wait_for(lambda: list(leftovers.check_own_monitors(here)), "it to be missed")
    (found,) = leftovers.check_own_monitors(here)
    assert "session 'ann' has no monitor" in found.what
    assert found.fix is not None
    assert found.fix.make() == ""
    wait_for(lambda: not list(leftovers.check_own_monitors(here)), "another")
