"""What starts in a session's folder starts in its sandbox, or not at all."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import procfs
from sm.adapters.tmux import Tmux
from sm.base import plugin
from sm.base.plugin import Plugin, Registry
from sm.config.load import load_any
from sm.config.schema import MachineSettings, ProjectSettings
from sm.sessions import agent as agents
from sm.sessions import agent_process, sandboxes
from sm.sessions.false_start import FalseStart
from sm.sessions.record import AdHocRecord
from sm.sessions.sandboxes import AnySettings, Sandbox, SandboxError, Start
from sm.sessions.session import AdHocSession, IssueSession
from sm.store import journal
from sm.store.events import Problem
from sm.store.paths import Root
from tests.helpers import make_repository, open_project, put_session, sm_yaml, wait_for
from tests.shell import REPOSITORY
from tests.terminal import argv, environment, launch_of

CALLS: list[str] = []
"""What the sandbox of these tests was asked for."""
FAULTS: dict[str, str] = {}
STARTS: list[Start] = []

AROUND = 'export INSIDE=box; "$@"; exit $?'
"""A wrapper that stays, as most programs of sandboxes do."""


def _note(what: str) -> None:
    CALLS.append(what)
    if what in FAULTS:
        raise OSError(FAULTS[what])


def wrap(start: Start) -> Sequence[str]:
    _note("wrap")
    STARTS.append(start)
    return () if "empty" in FAULTS else ("sh", "-c", AROUND, "box", *start.argv)


def check(_: AnySettings) -> str:
    return FAULTS.get("check", "")


BOX = Sandbox(wrap, check, lambda _: _note("prepare"), lambda _, session: _note(f"clean {session}"))
PLUGIN = Plugin(sandboxes={"box": f"{__name__}:BOX"})


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"boxes": f"{__name__}:PLUGIN"}
    monkeypatch.setattr(plugin, "_registry", Registry(places.items))
    for known in (CALLS, STARTS, FAULTS):
        known.clear()


@pytest.fixture
def session(root: Root, tmp_path: Path, log: Path) -> IssueSession:
    """A session of a project with the sandbox; its worktree is there."""
    make_repository(tmp_path)
    command = shlex.join(argv(tmp_path, log))
    path = sm_yaml(tmp_path, sandbox="box", agent={"command": command})
    made = put_session(open_project(path), 7, alive=False)
    made.worktree.mkdir(parents=True)
    return made


@pytest.fixture
def project(session: IssueSession) -> ProjectSettings:
    return session.project.settings


def test_the_agent_starts_inside_and_is_found_and_ended_with_what_is_around_it(
    tmux: Tmux, session: IssueSession, project: ProjectSettings, log: Path
) -> None:
    agent = agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    own = wait_for(lambda: log.with_name("log.env").exists() and environment(log), "the agent")
    assert own
    assert own["INSIDE"] == "box"
    assert own["SM_SESSION_DIR"] == str(session.dir.path)
    assert procfs.read_name(agent.process) == "sh", "the sandbox is the pane's own program"
    family = procfs.find_family([agent.process])
    assert len(family) > 1
    assert agents.runs_in_pane(tmux.pane(session.name), agent)
    assert agent_process.is_reachable(tmux, session)
    assert CALLS == ["prepare", "wrap"]
    agent_process.stop(tmux, session)
    assert not any(procfs.is_running(one) for one in family)
    assert CALLS[2:] == [f"clean {session.name}"]
    agent_process.stop(tmux, session)
    assert len(CALLS) == 3, "it is cleaned once"


def test_every_next_agent_starts_inside_too(
    tmux: Tmux,
    session: IssueSession,
    project: ProjectSettings,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    wait_for(log.with_name("log.env").exists, "the agent")
    log.with_name("log.env").unlink()
    monkeypatch.setenv("USER", "somebody else")
    start = structs.replace(launch_of(project), keeps_environment=True)
    agent_process.relaunch(tmux, session, start, generation=2)
    wait_for(log.with_name("log.env").exists, "the next agent")
    assert wait_for(lambda: environment(log), "its environment")["INSIDE"] == "box"
    assert ["prepare", "wrap", f"clean {session.name}", "prepare", "wrap"] == CALLS
    assert STARTS[1].environment == STARTS[0].environment, "as the one that it gets"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("check", "no namespaces here"),
        ("prepare", "OSError: no namespaces here"),
        ("wrap", "OSError: no namespaces here"),
        ("empty", "it gives no command"),
    ],
)
def test_without_its_sandbox_no_agent_starts(
    tmux: Tmux, session: IssueSession, project: ProjectSettings, fault: str, why: str
) -> None:
    FAULTS[fault] = "no namespaces here"
    with pytest.raises(SandboxError) as caught:
        agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    assert caught.value.message == f"sandbox 'box' cannot be had: {why}"
    assert tmux.panes() == {}
    assert not session.dir.launch_argv.exists()
    assert CALLS.count("prepare") == CALLS.count(f"clean {session.name}"), "nothing is left of it"
    assert FalseStart(0.0, caught.value.message).lacks_program, "no issue is at fault"


def test_an_agent_at_work_stays_if_the_next_one_could_not_start(
    tmux: Tmux, session: IssueSession, project: ProjectSettings
) -> None:
    agent = agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    FAULTS["check"] = "no namespaces here"
    with pytest.raises(SandboxError):
        agent_process.relaunch(tmux, session, launch_of(project), generation=2)
    assert agents.load(session.dir) == agent
    assert agent_process.is_reachable(tmux, session)


@pytest.mark.parametrize(
    ("name", "why"),
    [("bix", "no plugin has it: did you mean 'box'?"), ("x", "no plugin has it: there are 'box'")],
)
def test_a_sandbox_that_nobody_has_is_named(project: ProjectSettings, name: str, why: str) -> None:
    named = structs.replace(project, sandbox=name)
    assert sandboxes.find_problem(named) == f"sandbox '{name}' cannot be had: {why}"
    assert sandboxes.find_problem(project) == ""
    assert sandboxes.find_problem(MachineSettings()) == ""


def test_a_broken_cleaner_keeps_no_session_from_its_end(
    tmux: Tmux, session: IssueSession, project: ProjectSettings
) -> None:
    agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    FAULTS[f"clean {session.name}"] = "busy"
    agent_process.stop(tmux, session)
    assert tmux.panes() == {}
    [said] = [one.text for one in journal.read(session.root.journal) if isinstance(one, Problem)]
    assert said == "plugin 'boxes' could not clean a sandbox: OSError: busy"


def test_it_is_told_what_an_agent_needs(
    tmux: Tmux, session: IssueSession, project: ProjectSettings, log: Path
) -> None:
    agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    [start] = STARTS
    assert start.session == session.name
    assert start.folder == session.worktree
    assert start.settings == project
    assert [*start.argv[:2]] == argv(log.parent, log)[:2]
    root = session.root
    assert {session.worktree, root.private, root.phase("harb", 7)} <= {*start.writable}
    assert {REPOSITORY, Path(sys.prefix), session.record.config} <= {*start.readable}


@pytest.mark.parametrize(
    ("within", "expected"), [("clone", "box"), ("clone-worktrees/harb-3/src", "box"), ("x", "all")]
)
def test_a_session_without_an_issue_has_the_sandbox_of_its_folders_project_or_of_the_machine(
    root: Root, tmp_path: Path, within: str, expected: str
) -> None:
    make_repository(tmp_path)
    one = {"name": "harb", "repo": "clone", "sandbox": "box"}
    forge = {"kind": "local", "path": "forge"}
    path = tmp_path / "sm.yaml"
    path.write_text(json.dumps({"sandbox": "all", "projects": [one | {"forge": forge}]}))
    folder = tmp_path / within
    folder.mkdir(parents=True, exist_ok=True)
    record = AdHocRecord(
        name="s-00000001",
        provider="generic",
        cwd=folder,
        config=path,
        state_root=root.path,
        created_at=1.0,
        command="agent",
    )
    assert AdHocSession(record).holder.sandbox == expected


def test_a_project_may_have_none_where_the_machine_has_one(tmp_path: Path) -> None:
    make_repository(tmp_path)
    one = {"name": "harb", "repo": "clone", "forge": {"kind": "local", "path": "forge"}}
    path = tmp_path / "sm.yaml"
    for said, expected in (({}, "all"), ({"sandbox": ""}, "")):
        path.write_text(json.dumps({"sandbox": "all", "projects": [one | said]}))
        assert load_any(path, os.environ, tmp_path).projects[0].sandbox == expected
