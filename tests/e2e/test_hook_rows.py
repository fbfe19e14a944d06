"""The rows of the matrix that need an agent's hooks: the real hooks, called as its CLI would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from sm.issues.look.observe import observe
from sm.issues.rules.facts import Facts
from sm.sessions import agent_state, plan, registry
from sm.sessions.agent_state import State
from sm.sessions.history import StepVerb
from sm.shell_root import find_shell_root
from sm.views.project import read_overview
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Env, Stage, kill
from tests.e2e.test_faults import around, assert_died_at, crash_at
from tests.helpers import wait_for

HOOKS = find_shell_root() / "lib" / "hooks"
REMINDER = "[sm] Your turn has ended without a new phase"
RESUMED = "[sm] Your last turn was cut short"
PROFILE = {"hooks": "claude", "resume": ["--resume", "{context}"], "busy": ["^thinking"]}


@dataclass
class Hooked:
    """An issue whose agent calls the hooks of its start and its prompts; the test the others."""

    stage: Stage
    issue: int

    @property
    def state(self) -> agent_state.AgentState:
        return agent_state.read(self.stage.session(self.issue).dir)

    def call(self, name: str, event: str, **payload: object) -> None:
        """What the agent CLI does when this happens to it."""
        directory = self.stage.session(self.issue).dir
        head = {"session_id": self.state.context, "prompt_id": self.state.prompt}
        subprocess.run(
            ["bash", "-p", str(HOOKS / name)],
            input=json.dumps(head | {"hook_event_name": event} | payload),
            text=True,
            env=os.environ | {"SM_SESSION_DIR": str(directory.path)},
            check=True,
        )

    def ends_turn(self) -> None:
        self.call("stop", "Stop", stop_hook_active=False, background_tasks=[])

    def fails(self, error: str, said: str) -> None:
        self.call("stop-failure", "StopFailure", error=error, last_assistant_message=said)

    def shows(self, text: str) -> None:
        """The agent's screen is this and nothing else."""
        tmux = self.stage.project.tmux
        pane = tmux.pane(self.stage.session(self.issue).name)
        assert pane is not None
        tty = tmux.command("display-message", "-p", "-t", pane.id, "#{pane_tty}").strip()
        Path(tty).write_text(f"\x1b[2J\x1b[H{text}")
        wait_for(lambda: text.splitlines()[-1] in tmux.capture(pane.id), "the screen")

    def opens_dialog(self, command: str) -> None:
        asked = {"tool_name": "Bash", "tool_input": {"command": command}}
        self.shows("❯ 1. Yes")
        self.call("permission-request", "PermissionRequest", **asked)

    def make_older(self, seconds: float) -> None:
        """Let the state be as if it had begun so much earlier."""
        directory = self.stage.session(self.issue).dir
        words = directory.state.read_text().split()
        words[1] = f"{time.time() - seconds:.6f}"
        directory.state.write_text(" ".join(words) + "\n")
        registry.poke(directory)

    def told(self, opening: str) -> list[str]:
        return [text for text in self.stage.told() if text.startswith(opening)]

    def wait_told(self, opening: str, times: int) -> None:
        wait_for(lambda: len(self.told(opening)) == times, f"'{opening}' {times} times")

    def wait_restarted(self, pid: int) -> None:
        wait_for(lambda: self.stage.agent_pid(self.issue) != pid, "the restart")

    def waits_for(self) -> tuple[str, str]:
        """The state, and what it waits for, as `sm status` shows them."""
        row = read_overview(self.stage.project, time.time()).sessions[0]
        return row.state, row.waits_for

    def comments(self) -> list[str]:
        return [
            comment.body for comment in self.stage.project.forge.issues.read(self.issue).comments
        ]

    def wait_comments(self, count: int) -> list[str]:
        """What people were told, once it is so often."""
        wait_for(lambda: len(self.comments()) == count, f"{count} comments")
        return self.comments()

    def trace(self) -> str:
        return self.stage.sm("trace", "harb", str(self.issue)).stdout


@pytest.fixture
def hooked(stage_of: MakeStage) -> Hooked:
    return begin(stage_of())


def begin(stage: Stage, env: Env | None = None, **profile: str) -> Hooked:
    """An issue of the stage, taken up by an agent that calls hooks; `profile` is added to its."""
    config = yaml.safe_load(stage.config.read_text())
    config["profiles"] = {"puppet": PROFILE | profile}
    config["agent"]["profile"] = "puppet"
    config["agent"]["env"]["PUPPET_HOOKS"] = str(HOOKS)
    stage.config.write_text(yaml.safe_dump(config))
    agent = Hooked(stage, stage.file_issue())
    stage.poll(env=env)
    wait_for(lambda: agent.state.state is State.BUSY, "the agent to have its prompt")
    return agent


def test_an_agent_that_ends_its_turn_without_a_phase_is_reminded_twice(hooked: Hooked) -> None:
    for times in (1, 2):
        hooked.ends_turn()
        hooked.wait_told(REMINDER, times)
        wait_for(lambda: hooked.state.state is State.BUSY, "the next turn")
        receipts = plan.read_receipts(hooked.stage.session(hooked.issue).dir)
        assert all(receipt.row in ("start", "protocol-reminder") for receipt in receipts)
    hooked.ends_turn()
    assert hooked.waits_for() == ("working", "a new phase: its turn has ended")
    need = hooked.stage.find_need("limits")
    assert need["text"].startswith("The agent ends its turns without a phase")
    assert need["command"] == f"sm send harb#{hooked.issue} TEXT"
    hooked.stage.sm("react", "harb", str(hooked.issue))
    assert len(hooked.told(REMINDER)) == 2


def test_a_reactor_killed_behind_the_reminder_reminds_once(
    stage_of: MakeStage, tmp_path: Path
) -> None:
    once = tmp_path / "once"
    hooked = begin(stage_of(), {"SM_CRASH_AT": "inject:after", "SM_CRASH_ONCE": str(once)})
    hooked.ends_turn()
    directory = hooked.stage.session(hooked.issue).dir
    wait_for(once.exists, "the reactor to be killed")
    wait_for(
        lambda: [r for r in plan.read_receipts(directory) if r.row == "protocol-reminder"],
        "the reminder's receipt",
    )
    wait_for(lambda: hooked.told(REMINDER), "the reminder")
    hooked.stage.sm("react", "harb", str(hooked.issue))
    assert len(hooked.told(REMINDER)) == 1


def test_background_tasks_are_waited_for(hooked: Hooked) -> None:
    task = {"id": "b1", "type": "shell", "status": "running"}
    hooked.call("stop", "Stop", stop_hook_active=False, background_tasks=[task])
    assert hooked.waits_for() == ("working", "the agent's background tasks")
    hooked.stage.sm("react", "harb", str(hooked.issue))
    assert not hooked.told(REMINDER)


def test_a_reminder_that_waits_is_taken_back_when_a_phase_is_written(hooked: Hooked) -> None:
    session, tmux = hooked.stage.session(hooked.issue), hooked.stage.project.tmux
    pane = tmux.pane(session.name)
    assert pane is not None
    tmux.command("copy-mode", "-t", pane.id)
    hooked.ends_turn()
    wait_for(session.dir.problem.exists, "the reminder to wait")
    hooked.stage.push_work(hooked.issue)
    hooked.stage.write_phase(hooked.issue, "PHASE:awaiting_ci")
    wait_for(lambda: "it is over" in hooked.trace(), "the reminder to be taken back")
    tmux.command("send-keys", "-t", pane.id, "-X", "cancel")
    wait_for(lambda: hooked.told("[sm] CI passed"), "the CI result")
    assert not hooked.told(REMINDER)


@pytest.mark.parametrize("before", ["PHASE:perhaps", "PHASE:awaiting_ci"])
def test_a_person_is_told_of_a_question_while_an_earlier_message_waits_for_the_turns_end(
    hooked: Hooked, before: str
) -> None:
    session = hooked.stage.session(hooked.issue)
    hooked.stage.push_work(hooked.issue)
    hooked.stage.write_phase(hooked.issue, before)
    wait_for(session.dir.problem.exists, "the message about the phase to wait")
    hooked.stage.write_phase(hooked.issue, "PHASE:escalate")
    wait_for(hooked.comments, "the question on the forge")
    assert hooked.state.state is State.BUSY
    hooked.ends_turn()
    hooked.stage.sm("react", session.name)
    assert hooked.told("[sm]") == [], "it is about a phase that is no longer in the file"


def test_a_word_about_a_phase_is_taken_back_when_the_agent_corrects_it(hooked: Hooked) -> None:
    session = hooked.stage.session(hooked.issue)
    hooked.stage.write_phase(hooked.issue, "PHASE:perhaps")
    wait_for(session.dir.problem.exists, "the message about the phase to wait")
    hooked.stage.push_work(hooked.issue)
    hooked.stage.write_phase(hooked.issue, "PHASE:awaiting_ci")
    wait_for(lambda: "it is over" in hooked.trace(), "the message to be taken back")

    def is_answered() -> bool:
        found = plan.read_pending(session.dir)
        return found is not None and found.row == "ci-passed"

    wait_for(is_answered, "the answer to the phase that is right")
    waiting = hooked.stage.sm("queue", session.name).stdout
    assert "perhaps" not in waiting
    assert "[sm]" not in "".join(hooked.stage.told()[1:])


def test_a_dialog_is_told_to_a_person_and_is_over_when_it_is_answered_or_turned_down(
    hooked: Hooked,
) -> None:
    hooked.opens_dialog("deploy --token=abcdef123456")
    assert hooked.waits_for() == ("working", "an answer in its terminal")
    hooked.make_older(6)
    [comment] = hooked.wait_comments(1)
    assert "Bash" in comment
    assert "deploy" in comment
    assert "abcdef123456" not in comment
    assert f"sm attach harb {hooked.issue}" in comment
    wait_for(lambda: hooked.waits_for()[0] == "escalated", "the question on record")
    refused = hooked.stage.sm("reply", "harb", str(hooked.issue), "yes", check=False)
    assert refused.returncode != 0
    assert "sm attach" in refused.stderr
    hooked.call("post-tool-use", "PostToolUse", tool_name="Bash")
    assert hooked.waits_for()[0] == "working"
    assert len(hooked.stage.told()) == 1, "nothing was typed into the dialog"

    hooked.shows("Really?\r\n❯ 1. Yes\r\n  2. No")
    told = {"notification_type": "agent_needs_input", "message": "needs your choice"}
    hooked.call("notification", "Notification", **told)
    hooked.make_older(6)
    assert "1. Yes" in hooked.wait_comments(2)[1], "no hook says more than the screen"

    hooked.shows("❯\u00a0")

    def found() -> Facts:
        return observe(hooked.stage.session(hooked.issue)).facts

    wait_for(lambda: not found().escalated, "the end of the question")
    assert found().working
    assert hooked.waits_for() == ("working", "a new phase: its turn has ended")


def test_a_dialog_at_the_start_is_told_though_no_hook_was_called(hooked: Hooked) -> None:
    hooked.shows("Do you trust this folder?\r\n❯ 1. No, exit\r\n  2. Yes")
    state = hooked.stage.session(hooked.issue).dir.state
    state.write_text(f"starting {time.time():.6f} - -\n")
    hooked.make_older(6)
    comment = wait_for(hooked.comments, "the question on the forge")[0]
    assert "Do you trust this folder?" in comment
    assert f"sm attach harb {hooked.issue}" in comment
    begun = {"session_id": "context", "prompt_id": "prompt", "prompt": "Begin."}
    hooked.call("user-prompt-submit", "UserPromptSubmit", **begun)
    wait_for(lambda: hooked.waits_for()[0] == "working", "the agent to be at work")


def test_a_dialog_is_over_while_its_tool_runs_and_a_minute_after_it_was_dismissed(
    hooked: Hooked,
) -> None:
    """No hook tells of the answer before the tool's end, nor of a turn that ends by Escape."""
    hooked.opens_dialog("build for an hour")
    hooked.shows("thinking\r\n❯\u00a0")
    hooked.make_older(6)
    session = hooked.stage.session(hooked.issue)
    facts = observe(session).facts
    assert facts.dialog_at is None
    assert not facts.unreachable
    hooked.stage.sm("react", session.name)
    assert not hooked.comments()

    hooked.call("post-tool-use", "PostToolUse", tool_name="Bash")
    hooked.opens_dialog("deploy")
    hooked.make_older(10)
    hooked.shows("❯\u00a0")
    wait_for(lambda: hooked.state.state is State.IDLE, "the look at the screen")
    assert not hooked.told(REMINDER)
    *words, at = session.dir.shown.read_text().split()
    session.dir.shown.write_text(" ".join([*words, f"{float(at) - 61:.6f}\n"]))
    hooked.stage.sm("react", "harb", str(hooked.issue))
    hooked.wait_told(REMINDER, 1)


def test_a_session_is_parked_and_goes_on_although_the_reactor_dies(stage_of: MakeStage) -> None:
    stage = stage_of()
    points = around(StepVerb.PARK)
    hooked = begin(stage, crash_at(stage, points))
    hooked.fails("rate_limit", "You've hit your limit · resets in 3 hours")
    assert_died_at(stage, points)
    wait_for(lambda: hooked.waits_for()[0] == "parked", "the session to be parked")
    hooked.make_older(3 * 3600 + 60)
    wait_for(lambda: hooked.told(RESUMED), "the agent to go on", 60.0)
    assert len(hooked.told(RESUMED)) == 1


def test_a_usage_limit_parks_the_session_until_it_is_over(hooked: Hooked) -> None:
    hooked.fails("rate_limit", "You've hit your limit · resets in 3 hours")
    wait_for(lambda: hooked.waits_for()[0] == "parked", "the session to be parked")
    assert re.fullmatch(r"parked until [\d: -]+: usage limit", hooked.waits_for()[1])
    wait_for(hooked.comments, "the long pause to be told")
    assert "parked until" in hooked.comments()[0]
    assert "parked the session until" in hooked.trace()
    assert len(hooked.stage.told()) == 1
    hooked.make_older(3 * 3600 + 60)
    hooked.wait_told(RESUMED, 1)
    wait_for(lambda: hooked.waits_for()[0] == "working", "the agent at work")
    assert len(hooked.comments()) == 1


def test_trouble_of_the_api_is_no_crash(hooked: Hooked) -> None:
    first = hooked.stage.agent_pid(hooked.issue)
    hooked.fails("server_error", "API Error: 500")
    wait_for(lambda: hooked.waits_for()[0] == "parked", "the session to be parked")
    hooked.make_older(6)
    hooked.wait_told(RESUMED, 1)
    assert hooked.stage.agent_pid(hooked.issue) == first
    assert not hooked.comments()


def test_a_refused_login_is_asked_about_and_the_answer_goes_on(hooked: Hooked) -> None:
    hooked.fails("authentication_failed", "Invalid API key · Fix external API key")
    comment = wait_for(hooked.comments, "the question on the forge")[0]
    assert "no access to the API" in comment
    assert "Invalid API key" in comment
    hooked.stage.sm("reply", "harb", str(hooked.issue), "the key is mended")
    heard = wait_for(lambda: hooked.told("[sm] A person answered"), "the answer")
    assert "the key is mended" in heard[0]
    wait_for(lambda: hooked.waits_for()[0] == "working", "the agent at work")


def test_an_agent_that_is_gone_is_resumed_first_and_then_begun_anew(hooked: Hooked) -> None:
    for resumed in (True, False):
        pid, context = hooked.stage.agent_pid(hooked.issue), hooked.state.context
        kill(pid)
        hooked.wait_restarted(pid)
        wait_for(lambda: hooked.state.state is State.BUSY, "the agent to have its prompt")
        assert hooked.stage.told("arguments")[-1] == (f"--resume {context}" if resumed else "")
