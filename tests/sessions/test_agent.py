from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters import procfs
from sm.adapters.agent.claude import CLAUDE
from sm.adapters.procfs import Process
from sm.adapters.tmux import Pane, Tmux
from sm.adapters.tmux_start import start_session
from sm.base.errors import UsageError
from sm.config.schema import AgentSettings, ProjectSettings
from sm.sessions import agent as agents
from sm.sessions import agent_process, registry
from sm.sessions.agent_process import AgentError
from sm.sessions.session import IssueSession
from sm.shell_root import find_shell_root
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.terminal import arguments, argv, environment, launch_of, make_project, make_session

PROMPT = "Mend it.\n\n$(id) `id` 'a' \"b\" \\ ; ünï ✓\nend;"


@pytest.fixture
def project(tmp_path: Path, log: Path) -> ProjectSettings:
    return make_project(tmp_path, argv(tmp_path, log))


@pytest.fixture
def session(root: Root, tmp_path: Path) -> IssueSession:
    return registry.create(root, make_session(root, tmp_path / 'it\'s a #{work} "tree" %H'))


def ready(log: Path) -> None:
    wait_for(log.with_name("log.argv").exists, "the agent")
    wait_for(lambda: log.with_name("log.argv").read_text(), "its arguments")


def read_prompt(log: Path, session: IssueSession) -> str:
    """The prompt that its argument names, which itself all users can read."""
    (argument,) = arguments(log)
    assert argument.startswith("[sm] Task ")
    assert argument.endswith(f": {session.dir.prompt}")
    return session.dir.prompt.read_text()


def in_pane(tmux: Tmux, session: IssueSession) -> int:
    pane = tmux.pane(session.name)
    assert pane is not None
    return pane.pid


def test_the_agent_is_the_panes_own_program_in_its_worktree(
    root: Root, tmux: Tmux, session: IssueSession, project: ProjectSettings, log: Path
) -> None:
    agent = agent_process.launch(tmux, session, launch_of(project, PROMPT), generation=1)
    ready(log)
    assert read_prompt(log, session) == PROMPT
    assert agent.pid == in_pane(tmux, session)
    assert Path(f"/proc/{agent.pid}/cwd").readlink() == session.worktree
    assert agents.load(session.dir) == agent
    assert agents.is_alive(session.dir)
    assert agents.runs_in_pane(tmux.pane(session.name), agent)
    assert agents.read_process(session.dir) == agent.process
    shown = root.terminal_log("harb", 7)
    wait_for(lambda: "hello" in shown.read_text(), "the terminal log")
    assert shown.stat().st_mode & 0o777 == 0o600


def test_a_person_is_shown_how_the_task_begins(
    tmux: Tmux, session: IssueSession, project: ProjectSettings, log: Path
) -> None:
    """It rides on the prompt hook: else the terminal shows nothing but that it came."""
    task = "\n".join(f"row {number}" for number in range(60))
    hooked = structs.replace(launch_of(project, task), profile=structs.replace(CLAUDE, settings=()))
    agent_process.launch(tmux, session, hooked, generation=1)
    ready(log)
    answer = json.loads(session.dir.opening.read_text().split("\n")[1])
    assert answer["hookSpecificOutput"]["additionalContext"] == task
    shown = "\n".join(task.split("\n")[:40])
    assert answer["systemMessage"] == f"{shown}\n… all of it: {session.dir.prompt}"


def test_the_agent_gets_exactly_the_environment_that_is_named(
    root: Root,
    tmux: Tmux,
    session: IssueSession,
    tmp_path: Path,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_TOKEN", "secret")
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CHOSEN", "a b'c")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "bash_env"))
    (tmp_path / "bash_env").write_text("export SNEAKED=1\n")
    # A server that was started by somebody else, with everything that they had.
    server = ["tmux", "-L", str(tmux.socket), "new-session", "-d", "-s", "theirs", "cat"]
    subprocess.run(server, check=True)
    project = make_project(
        tmp_path,
        argv(tmp_path, log),
        pass_env=("CHOSEN", "NOT_SET"),
        env={"SET": "x=y\nz", "PROJECT_NAME": "other"},
    )
    agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    ready(log)
    found = environment(log)
    own = [str(find_shell_root() / "lib" / "agent"), str(find_shell_root() / "bin")]
    assert found.pop("PATH").split(":")[:2] == own
    assert found.pop("TMUX_PANE").startswith("%")
    assert f"/{tmux.socket}," in found.pop("TMUX")
    assert found.pop("TERM")
    assert found == {
        "CHOSEN": "a b'c",
        "SET": "x=y\nz",
        "HOME": os.environ["HOME"],
        "USER": "ada",
        "LANG": "C.UTF-8",
        "TMPDIR": os.environ["TMPDIR"],
        "PHASE_FILE": str(root.phase("harb", 7)),
        "PROJECT_NAME": "harb",
        "ISSUE": "7",
        "SM_CLONE": str(session.record.repo),
        "CLAUDE_SESSION_MANAGER_ID": "dev-harb-7",
        "SESSION_NAME": "dev-harb-7",
        "SM_SESSION_DIR": str(session.dir.path),
        "SM_STATE_ROOT": str(root.path),
        "SM_CONFIG": str(session.record.config),
        "SM_PYTHON": sys.executable,
        "SM_TMUX_SOCKET": str(tmux.socket),
    }


def test_a_missing_program_is_named_here_and_in_the_terminal_log(
    root: Root, tmux: Tmux, session: IssueSession, tmp_path: Path
) -> None:
    project = make_project(tmp_path, ["no-such-agent", "--flag"])
    with pytest.raises(AgentError, match="cannot start 'no-such-agent': no such program on PATH"):
        agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    shown = root.terminal_log("harb", 7)
    wait_for(lambda: "cannot start 'no-such-agent'" in shown.read_text(), "the reason")
    wait_for(lambda: tmux.pane(session.name) is None, "the end of the session")
    assert agents.load(session.dir) is None
    assert not agents.is_alive(session.dir)


@pytest.mark.parametrize(
    ("command", "message"),
    [("  ", "has no command"), ("claude 'x", "no closing quotation")],
)
def test_an_unusable_command_is_a_clear_error(
    root: Root, tmux: Tmux, session: IssueSession, tmp_path: Path, command: str, message: str
) -> None:
    project = structs.replace(make_project(tmp_path, []), agent=AgentSettings(command=command))
    with pytest.raises(UsageError, match=message):
        agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    assert tmux.panes() == {}


def test_an_unusable_variable_is_a_clear_error(
    root: Root, tmux: Tmux, session: IssueSession, tmp_path: Path
) -> None:
    for name, value in {"A B": "x", "": "x", "A": "nul\0"}.items():
        project = make_project(tmp_path, ["cat"], env={name: value})
        with pytest.raises(UsageError, match=r"agent.env|NUL"):
            agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_prompt_of_any_length_reaches_the_agent(
    root: Root, tmux: Tmux, session: IssueSession, project: ProjectSettings, log: Path, size: int
) -> None:
    prompt = "é" * (size // 2)
    agent_process.launch(tmux, session, launch_of(project, prompt), generation=1)
    ready(log)
    assert read_prompt(log, session) == prompt
    assert session.dir.prompt.stat().st_mode & 0o777 == 0o600


def test_a_prompt_that_looks_like_an_option_is_none(
    root: Root, tmux: Tmux, session: IssueSession, project: ProjectSettings, log: Path
) -> None:
    agent_process.launch(tmux, session, launch_of(project, "--help\0"), generation=1)
    ready(log)
    assert read_prompt(log, session) == "Note: --help"


LAUNCH = """
import sys
from pathlib import Path
from sm.adapters.tmux import Pane, Tmux
from sm.sessions import agent_process, registry
from sm.store.paths import Root
from tests.terminal import launch_of, make_project
root, folder = Root(Path(sys.argv[1])), Path(sys.argv[2])
session = registry.load(root, "dev-harb-7")
project = make_project(folder, sys.argv[4:])
session.provide(holder=project)
agent_process.launch(Tmux(sys.argv[3]), session, launch_of(project, "p"), generation=1)
"""


@pytest.mark.parametrize("point", ["launch.before-start", "launch.after-start"])
def test_a_launch_that_was_killed_is_completed_by_the_next_with_one_agent(
    root: Root, tmux: Tmux, session: IssueSession, project: ProjectSettings, log: Path, point: str
) -> None:
    command = argv(log.parent, log)
    script = [sys.executable, "-c", LAUNCH, str(root.path), str(log.parent), str(tmux.socket)]
    killed = subprocess.run([*script, *command], env=os.environ | {"SM_CRASH_AT": point})
    assert killed.returncode == -signal.SIGKILL
    assert agents.load(session.dir) is None
    before = tmux.pane(session.name)
    agent = agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    assert before is None or before.pid == agent.pid
    assert agent.pid == in_pane(tmux, session)
    assert agent_process.launch(tmux, session, launch_of(project, "p"), generation=1) == agent


def test_a_launch_does_not_take_the_agent_of_another_generation_for_its_own(
    root: Root, tmux: Tmux, session: IssueSession, project: ProjectSettings
) -> None:
    first = agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    with pytest.raises(AgentError, match="runs something else already"):
        agent_process.launch(tmux, session, launch_of(project, "p"), generation=2)
    agent_process.stop(tmux, session)
    second = agent_process.launch(tmux, session, launch_of(project, "p"), generation=2)
    assert second.generation == 2
    assert second.pid != first.pid
    assert agents.is_alive(session.dir)


def test_a_session_of_a_persons_own_is_neither_taken_nor_stopped(
    root: Root, tmux: Tmux, session: IssueSession, project: ProjectSettings, tmp_path: Path
) -> None:
    theirs = start_session(tmux, session.name, tmp_path, ["sleep", "100"])
    with pytest.raises(AgentError, match="runs something else already"):
        agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    assert agent_process.adopt(tmux, session) is None
    agent_process.stop(tmux, session)
    now = tmux.pane(session.name)
    assert now is not None
    assert (now.id, now.pid) == (theirs.id, theirs.pid)


def test_an_agent_is_adopted_when_all_files_of_its_session_are_lost(
    root: Root, tmux: Tmux, session: IssueSession, project: ProjectSettings, log: Path
) -> None:
    assert agent_process.adopt(tmux, session) is None
    agent = agent_process.launch(tmux, session, launch_of(project, "p"), generation=3)
    ready(log)
    registry.forget(root, session)
    registry.create(root, session)
    assert not agents.is_alive(session.dir)
    assert agent_process.adopt(tmux, session) == agent
    assert agents.is_alive(session.dir)
    tmux.command("send-keys", "-t", agent.pane_id, "x", "Enter")
    assert root.terminal_log("harb", 7).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("is_on_record", [True, False])
def test_a_later_process_with_the_number_of_a_dead_agent_is_not_adopted(
    tmux: Tmux,
    session: IssueSession,
    project: ProjectSettings,
    monkeypatch: pytest.MonkeyPatch,
    is_on_record: bool,
) -> None:
    """On a busy machine the numbers come round within minutes, and threads take some, too."""
    agent = agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    if not is_on_record:
        session.dir.agent_pid.unlink()
    leader = agent.pid if is_on_record else 1
    later = Process(agent.pid, agent.started + 500, parent=1, session=leader)
    with monkeypatch.context() as given_away:
        given_away.setattr(procfs, "find", lambda pid: later if pid == agent.pid else None)
        assert agent_process.adopt(tmux, session) is None
        assert not agent_process.is_reachable(tmux, session)
    assert agent_process.adopt(tmux, session) == agent


def test_a_pane_that_stays_after_its_program_has_nothing_to_adopt(
    tmux: Tmux, session: IssueSession, project: ProjectSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    tmux.command("set-option", "-w", "-t", agent.pane_id, "remain-on-exit", "on")
    os.kill(agent.pid, signal.SIGKILL)

    def is_dead() -> bool:
        pane = tmux.pane(session.name)
        return pane is not None and pane.dead

    wait_for(is_dead, "the end of its pane")
    session.dir.agent_pid.unlink()
    monkeypatch.setattr(procfs, "find", lambda pid: Process(pid, 1, parent=1, session=pid))
    assert agent_process.adopt(tmux, session) is None


def test_a_crashed_agent_is_not_alive(
    root: Root, tmux: Tmux, session: IssueSession, project: ProjectSettings
) -> None:
    assert not agents.is_alive(session.dir)
    agent = agent_process.launch(tmux, session, launch_of(project, "p"), generation=1)
    os.kill(agent.pid, signal.SIGKILL)
    wait_for(lambda: not agents.is_alive(session.dir), "its end")
    wait_for(lambda: not agents.runs_in_pane(tmux.pane(session.name), agent), "the end of its pane")
    agent_process.stop(tmux, session)


@pytest.mark.parametrize("grace_s", [0.3, 0.0])
def test_a_stop_leaves_no_process_even_of_the_stubborn(
    root: Root,
    tmux: Tmux,
    session: IssueSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    grace_s: float,
) -> None:
    """What was killed may take longer to end, on a busy machine, than the agent gets to obey."""
    monkeypatch.setattr(agent_process, "STOP_GRACE_S", grace_s)
    script = (
        "trap '' HUP TERM; setsid sleep 201 & nohup sleep 202 >/dev/null 2>&1 & "
        "(trap '' HUP TERM; while :; do sleep 0.1; done) & touch started; while :; do sleep 1; done"
    )
    project = make_project(tmp_path, ["bash", "-c", script])
    start_session(tmux, "stranger", tmp_path, ["sleep", "203"])
    stranger = wait_for(lambda: running(tmux, "stranger", "sleep"), "the stranger's program")
    assert stranger
    agent = agent_process.launch(tmux, session, launch_of(project, ""), generation=1)
    wait_for((session.worktree / "started").exists, "its children")
    wait_for(lambda: len(procfs.find_family([agent.process])) >= 5, "its children")
    family = procfs.find_family([agent.process])
    agent_process.stop(tmux, session)
    assert not [process for process in family if procfs.is_running(process)]
    assert tmux.panes() == {"stranger": stranger}
    children = Path(f"/proc/{server_pid(tmux)}/task/{server_pid(tmux)}/children")
    wait_for(
        lambda: children.read_text().split() == [str(stranger.pid)], "the end of the terminal log"
    )
    agent_process.stop(tmux, session)


def running(tmux: Tmux, session: str, program: str) -> Pane | None:
    """The session's pane once the program runs in it: before, it is tmux's own process."""
    pane = tmux.pane(session)
    return pane if pane and pane.command == program else None


def server_pid(tmux: Tmux) -> str:
    return tmux.command("display-message", "-p", "#{pid}").strip()


def test_what_an_agent_left_running_when_it_crashed_is_stopped(
    root: Root, tmux: Tmux, session: IssueSession, tmp_path: Path
) -> None:
    project = make_project(
        tmp_path, ["bash", "-c", "nohup sh -c 'touch started; exec sleep 204' & wait"]
    )
    agent = agent_process.launch(tmux, session, launch_of(project, ""), generation=1)
    wait_for((session.worktree / "started").exists, "its child")
    os.kill(agent.pid, signal.SIGKILL)
    wait_for(lambda: not agents.is_alive(session.dir), "its end")
    assert procfs.find_family([agent.process])
    agent_process.stop(tmux, session)
    assert procfs.find_family([agent.process]) == set()


def leave_running(tmux: Tmux, session: IssueSession, tmp_path: Path) -> Process:
    """A tool in a process session of its own, whose agent was killed, as were all in between."""
    line = "setsid sh -c 'echo $$ >part; mv part tool; sleep 204; touch survived' & wait"
    project = make_project(tmp_path, ["bash", "-c", line])
    agent = agent_process.launch(tmux, session, launch_of(project, ""), generation=1)
    wait_for((session.worktree / "tool").exists, "its tool")
    os.kill(agent.pid, signal.SIGKILL)
    wait_for(lambda: not agents.is_alive(session.dir), "its end")
    tool = procfs.find(int((session.worktree / "tool").read_text()))
    assert tool
    wait_for(lambda: tmux.pane(session.name) is None, "the terminal's end")
    assert tool not in procfs.find_family([agent.process])
    return tool


def test_a_tool_that_outlives_its_killed_agent_is_ended_before_the_next_one_begins(
    root: Root, tmux: Tmux, session: IssueSession, tmp_path: Path, log: Path
) -> None:
    tool = leave_running(tmux, session, tmp_path)
    project = make_project(tmp_path, argv(tmp_path, log))
    agent_process.relaunch(tmux, session, launch_of(project, ""), generation=2)
    assert not procfs.is_running(tool)
    assert not (session.worktree / "survived").exists()
    ready(log)
    assert agents.is_alive(session.dir)
    agent_process.end_strays(session)
    assert agents.is_alive(session.dir)


def test_a_person_in_the_worktree_is_not_taken_for_a_tool(
    root: Root, tmux: Tmux, session: IssueSession, tmp_path: Path
) -> None:
    leave_running(tmux, session, tmp_path)
    with subprocess.Popen(["sleep", "205"], cwd=session.worktree) as person:
        agent_process.stop(tmux, session)
        assert person.poll() is None
        person.kill()


def test_a_pid_that_was_given_to_another_is_left_alone(
    root: Root, tmux: Tmux, session: IssueSession
) -> None:
    other = subprocess.Popen(["sleep", "205"], start_new_session=True)
    found = procfs.find(other.pid)
    assert found
    session.dir.agent_pid.write_text(f"{other.pid} {found.started - 5}\n")
    session.dir.agent_pid.chmod(0o600)
    assert agents.read_process(session.dir) == Process(other.pid, found.started - 5)
    assert not agents.is_alive(session.dir)
    agent_process.stop(tmux, session)
    assert procfs.is_running(found)
    other.kill()
    other.wait()
