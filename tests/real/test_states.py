"""What the hooks of the real Claude Code say of it, and what is done when it is gone."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

from sm.adapters import procfs
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import queue
from sm.messages.queue import MessageFolder, Mode
from sm.personal.reactor import run_pass
from sm.sessions import agent_process, agent_state
from sm.sessions.agent_state import State
from sm.shell_root import find_shell_root
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Tool
from tests.real.managed import ACCEPTED, Managed, until

GONE = Outcome(Status.REFUSED, Refusal.GONE)


def marker(managed: Managed) -> Path:
    return managed.root.idle_marker(managed.session.name)


def test_a_turn_is_told_from_its_beginning_to_its_end(managed: Managed, api: Api) -> None:
    assert managed.send("Begin.") == ACCEPTED
    managed.wait_state(State.IDLE)
    wait_for(marker(managed).exists, "the idle marker")
    first = agent_state.read(managed.session.dir)
    assert first.context == api.main[-1].session
    managed.wait_screen(lambda screen: screen.prompt == "idle", "an idle prompt")
    assert managed.send("Again.") == ACCEPTED
    wait_for(lambda: agent_state.read(managed.session.dir).prompt != first.prompt, "a new prompt")
    managed.wait_state(State.IDLE)
    names = [line.split()[1] for line in managed.session.dir.events.read_text().splitlines()]
    assert names == ["SessionStart", "UserPromptSubmit", "Stop", "UserPromptSubmit", "Stop"]


def test_a_turn_that_ends_with_background_tasks_is_not_idle(managed: Managed, api: Api) -> None:
    go = managed.session.record.cwd / "go"
    api.say(Reply("", (Tool.bash(until(go), run_in_background=True),)), "It runs.", "It is done.")
    managed.send("Begin.")
    managed.wait_state(State.WAITING)
    assert not marker(managed).exists()
    managed.send("Meanwhile.")  # its prompt is free
    managed.drain_until_empty()
    managed.wait_state(State.WAITING)
    go.touch()
    managed.wait_state(State.IDLE)
    assert marker(managed).exists()
    assert api.appearances("Meanwhile.") == 1


def test_an_event_of_a_cleared_context_changes_nothing(managed: Managed, api: Api) -> None:
    managed.send("Begin.")
    managed.wait_state(State.IDLE)
    directory = managed.session.dir
    old, payload = agent_state.read(directory), directory.stop_payload.read_bytes()
    managed.type("/clear")
    managed.wait_screen(lambda screen: screen.draft == "/clear", "the command")
    managed.keys("Enter")
    wait_for(lambda: agent_state.read(directory).context != old.context, "a new context")
    managed.wait_screen(lambda screen: screen.prompt == "idle", "an idle prompt")
    new = agent_state.read(directory)
    late = payload.replace(b'"hook_event_name":"Stop"', b'"hook_event_name":"UserPromptSubmit"')
    environment = {"SM_SESSION_DIR": str(directory.path), "PATH": os.environ["PATH"]}
    for name, told in (("user-prompt-submit", late), ("stop", payload)):
        hook = find_shell_root() / "lib" / "hooks" / name
        subprocess.run(["bash", "-p", str(hook)], input=told, env=environment, check=True)
    assert directory.events.read_text().splitlines()[-1].endswith(" stale")
    now = agent_state.read(directory)
    assert (now.state, now.context, now.since) == (new.state, new.context, new.since)
    assert managed.send("In the new one.") == ACCEPTED
    wait_for(lambda: api.appearances("In the new one."), "the message")
    assert api.main[-1].session == new.context
    assert api.appearances("Begin.") == 0


def test_a_client_that_was_killed_at_work_gets_nothing_and_the_next_gets_on(
    managed: Managed, tmux: Tmux, api: Api, tmp_path: Path
) -> None:
    """One that rests is in the next test."""
    keeper = start_session(tmux, "keeper", tmp_path, ["cat"])
    api.say(Reply("", (Tool.bash("python3 -c 'import time; time.sleep(30)'"),)))
    managed.send("Begin.")
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    os.kill(managed.agent.pid, signal.SIGKILL)
    wait_for(lambda: tmux.pane(managed.session.name) is None, "its end")
    assert managed.send("To nobody.") == GONE
    assert queue.is_empty(managed.session.dir)
    assert tmux.panes()["keeper"].pid == keeper.pid
    agent_process.stop(tmux, managed.session)
    managed.start()
    assert managed.send("To the next.") == ACCEPTED
    wait_for(lambda: api.appearances("To the next."), "the message")
    assert all(request.appearances("To nobody.") == 0 for request in api.main)


def test_a_dead_pane_is_refused_and_the_server_lives(managed: Managed, tmux: Tmux) -> None:
    tmux.command("set-option", "-w", "-t", managed.agent.pane_id, "remain-on-exit", "on")
    os.kill(managed.agent.pid, signal.SIGKILL)
    wait_for(lambda: tmux.panes()[managed.session.name].dead, "its end")

    def read_lines() -> set[str]:
        # At its leisure tmux adds a line of its own, and moves the others up by one.
        lines = tmux.capture(managed.agent.pane_id).splitlines()
        return {line for line in lines if not line.startswith("Pane is dead")}

    left = read_lines()
    assert managed.send("To nobody.") == GONE
    assert queue.is_empty(managed.session.dir)
    assert managed.send("!touch broken\n" * 5, Mode.URGENT) == GONE
    run_pass(managed.session)  # what its monitor has done
    assert managed.session.dir.over.read_text() == "has died\n"
    assert read_lines() <= left
    assert tmux.panes()[managed.session.name].dead


def test_a_shell_that_came_back_runs_nothing(unstarted: Managed, tmux: Tmux) -> None:
    script = unstarted.folder / "wrapper"
    client = shlex.join([str(unstarted.program), *unstarted.options])
    script.parent.mkdir()
    script.write_text(f'{client} "$@"\nexec bash --norc -i\n')
    unstarted.program, unstarted.options = Path("bash"), (str(script),)
    unstarted.start()
    assert unstarted.send("To the client.") == ACCEPTED
    unstarted.wait_state(State.IDLE)
    pane = unstarted.agent.pane_id
    client_pid = unstarted.session.dir.client.read_text().strip()
    os.kill(int(client_pid), signal.SIGKILL)

    def shell() -> bool:
        shown = tmux.command("display-message", "-p", "-t", pane, "#{pane_current_command}")
        return shown.strip() == "bash"

    wait_for(shell, "the shell")
    wait_for(lambda: "bash-" in tmux.capture(pane), "its prompt")
    left = tmux.capture(pane)
    assert "❯" in left  # what a sender would look for
    assert unstarted.send("touch broken") == Outcome(Status.WAITING, Refusal.SHELL)
    assert unstarted.send("!touch broken\n" * 5).status is Status.WAITING
    assert unstarted.send("touch broken", Mode.URGENT) == Outcome(Status.WAITING, Refusal.SHELL)
    run_pass(unstarted.session)  # what its monitor has done
    assert unstarted.session.dir.over.read_text() == "has died\n"
    assert queue.count(unstarted.session.dir, MessageFolder.WAITING) == 3
    assert tmux.capture(pane) == left
    tmux.command("send-keys", "-t", pane, "touch its-own", "Enter")
    wait_for((unstarted.session.record.cwd / "its-own").exists, "what the person types")
    assert not (unstarted.session.record.cwd / "broken").exists()


def test_a_persons_own_status_line_is_shown_in_sessions_too(unstarted: Managed) -> None:
    assert unstarted.session  # made, with its HOME
    home = unstarted.folder / "home" / ".claude" / "settings.json"
    settings = json.loads(home.read_text())
    line = {"type": "command", "command": "echo my own line"}
    home.write_text(json.dumps(settings | {"statusLine": line}))
    unstarted.start()
    wait_for(lambda: "my own line" in unstarted.tmux.capture(unstarted.agent.pane_id), "the line")
    wait_for(unstarted.session.dir.usage.exists, "what the line was told")


def test_a_tool_of_a_client_that_was_killed_does_not_go_on(managed: Managed, api: Api) -> None:
    """Its client leaves it without a parent, and it would go on in the worktree."""
    managed.watch()
    place = managed.session.record.cwd
    (place / "x.sh").write_text("echo $$ >part; mv part tool; sleep 300; touch survived\n")
    api.say(Reply("", (Tool.bash("bash x.sh"),)))
    managed.send("Begin.")
    wait_for((place / "tool").exists, "the tool")
    tool = procfs.find(int((place / "tool").read_text()))
    assert tool
    os.kill(managed.agent.pid, signal.SIGKILL)
    wait_for(managed.session.dir.over.exists, "its end to be noted")
    assert not procfs.is_running(tool)
    assert not (place / "survived").exists()
