"""Faults of an account, as several sessions meet them: one need and message, and all go on."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from sm.sessions import account_faults, plan, registry
from sm.sessions.agent_state import State
from sm.sessions.history import StepVerb, fold
from sm.store.files import write_json
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage, kill
from tests.e2e.test_hook_rows import HOOKS, PROFILE, Hooked
from tests.helpers import wait_for

RESUMED = "[sm] Your last turn was cut short"
SESSIONS = 3
"""One tries again, and two wait for it in line."""


@dataclass
class Team:
    """Sessions of one account, whose folder is in the stage's own home."""

    stage: Stage
    home: Path
    agents: list[Hooked]

    def needs(self, kind: str) -> list[dict[str, Any]]:
        """What `sm needs` lists of that kind."""
        found = json.loads(self.stage.sm("needs", "--json", check=False).stdout)
        return [one for one in found if one["kind"] == kind]

    def rows(self) -> list[dict[str, Any]]:
        """The sessions, as `sm status` shows them."""
        [shown] = json.loads(self.stage.sm("status", "--json").stdout)
        return list(shown["sessions"])

    def wait_phases(self, phase: str) -> None:
        """Wait until all of them are at that."""
        wait_for(lambda: {row["phase"] for row in self.rows()} == {phase}, phase, every_s=0.3)

    def resumed(self) -> list[str]:
        """The sessions that were told to go on, in that order."""
        log = (self.stage.folder / "puppet.jsonl").read_text().splitlines()
        told = [json.loads(line) for line in log]
        return [one["session"] for one in told if one["text"].startswith(RESUMED)]

    def find(self, session: str) -> Hooked:
        """The agent of a session, once its turn has begun: it logs a prompt before that."""
        found = next(one for one in self.agents if session.endswith(f"-{one.issue}"))
        wait_for(partial(is_busy, found), "its turn")
        return found

    def comments(self) -> list[str]:
        """What people were told on all issues."""
        return [comment for one in self.agents for comment in one.comments()]

    def log_in(self) -> None:
        """What a person does, in whichever terminal."""
        (self.home / ".claude" / ".credentials.json").write_text("{}")

    def restarts(self) -> list[str]:
        """The sessions whose client was started again."""
        sessions = [self.stage.session(one.issue) for one in self.agents]
        return [
            session.name
            for session in sessions
            for receipt in plan.read_receipts(session.dir)
            if receipt.verb is StepVerb.RECOVER
        ]


@pytest.fixture
def team(stage_of: MakeStage, tmp_path: Path) -> Team:
    stage, home = stage_of(settings={"max_sessions": SESSIONS}), tmp_path / "client-home"
    (home / ".claude").mkdir(parents=True)
    config = yaml.safe_load(stage.config.read_text())
    config["profiles"] = {"puppet": PROFILE | {"spending": "claude"}}
    config["agent"]["profile"] = "puppet"
    config["agent"]["env"] |= {"PUPPET_HOOKS": str(HOOKS), "HOME": str(home)}
    stage.config.write_text(yaml.safe_dump(config))
    agents = [Hooked(stage, stage.file_issue()) for _ in range(SESSIONS)]
    stage.poll()
    for agent in agents:
        wait_for(partial(is_busy, agent), "the agent to have its prompt")
    return Team(stage, home, agents)


def is_busy(agent: Hooked) -> bool:
    return agent.state.state is State.BUSY


def lose_login(team: Team, *agents: Hooked) -> None:
    for agent in agents or team.agents:
        agent.fails("authentication_failed", "Invalid API key · Please run /login")


def test_a_lost_login_is_one_need_and_one_message_and_all_go_on_when_it_is_found(
    team: Team,
) -> None:
    lose_login(team)
    team.wait_phases("parked")
    wait_for(team.comments, "the message")
    for row in team.rows():
        assert row["waits_for"].startswith("parked for the login of Claude Code (~/.claude)")
        assert row["need"] is None
    rest = f"{SESSIONS} sessions rest"
    wait_for(lambda: rest in team.needs("login")[0]["text"], "all of them in the need")
    [need] = team.needs("login")
    assert need["text"].startswith("Login of Claude Code (~/.claude): no access to the API")
    assert "Please run /login" in need["text"]
    assert need["command"].startswith("sm attach harb ")
    team.stage.file_issue()
    assert "nothing new is taken up: Claude Code (~/.claude): no access" in team.stage.poll().stdout
    assert team.resumed() == []
    team.log_in()
    [first] = wait_for(team.resumed, "the first to go on") or []
    assert team.needs("login")
    team.find(first).ends_turn()
    wait_for(lambda: not team.needs("login"), "the end of the need", every_s=0.3)
    wait_for(lambda: len(team.resumed()) == SESSIONS, "all to go on", 60.0)
    assert len(set(team.resumed())) == SESSIONS
    [comment] = team.comments()
    assert "Please run /login" in comment
    assert team.restarts() == []
    for one in team.agents:
        one.ends_turn()
    root = team.stage.project.root
    wait_for(lambda: not account_faults.list_faults(root), "the end of the fault")


def test_while_a_limit_lasts_one_session_tries_and_the_others_wait_for_it(team: Team) -> None:
    for agent in team.agents:
        agent.fails("overloaded", "API Error: 529 Overloaded")
    team.wait_phases("parked")
    root = team.stage.project.root
    wait_for(lambda: count_resting(team) == SESSIONS, "all to be noted")
    assert not team.needs("limits")
    make_due(team)
    [first] = wait_for(team.resumed, "one to try") or []
    team.find(first).fails("overloaded", "API Error: 529 Overloaded")
    wait_for(lambda: account_faults.list_faults(root)[0][1].count == 2, "the try in vain")
    assert team.resumed() == [first]
    make_due(team)
    wait_for(lambda: len(team.resumed()) == 2, "another try")
    second = team.resumed()[-1]
    team.find(second).ends_turn()
    wait_for(lambda: set(team.resumed()) == set(names(team)), "all to go on", 60.0)
    assert team.comments() == []
    assert team.restarts() == []


def test_a_client_that_alone_has_a_stale_login_is_started_again_before_anybody_is_asked(
    team: Team,
) -> None:
    stale, *others = team.agents
    name, context = team.stage.session(stale.issue).name, stale.state.context
    lose_login(team, stale)
    wait_for(lambda: count_resting(team) == 1, "its failure to be noted")
    assert team.needs("login") == [], "others are at work"
    works(others[0])
    wait_for(lambda: team.resumed() == [name], "it to be told to go on", 60.0)
    wait_for(lambda: stale.state.state is State.BUSY, "its turn")
    lose_login(team, stale)
    wait_for(lambda: team.restarts() == [name], "its client to be started again")
    resumed = f"--resume {context}"
    wait_for(lambda: resumed in team.stage.told("arguments", name)[-1], "its conversation")
    wait_for(lambda: stale.state.state is State.BUSY, "the agent to have its prompt")
    wait_for(lambda: plan.read_pending(team.stage.session(stale.issue).dir) is None, "its plan")
    assert fold(plan.read_receipts(team.stage.session(stale.issue).dir)).recoveries == 0
    assert team.needs("login") == []
    assert team.comments() == []
    lose_login(team, stale)
    works(others[1])
    wait_for(lambda: team.comments(), "the question", 60.0)
    [need] = team.needs("login")
    assert need["issue"] == stale.issue
    assert team.restarts() == [name]
    team.stage.sm("reply", "harb", str(stale.issue), "it is mended")
    answered = "[sm] A person answered"
    wait_for(lambda: any(answered in one for one in team.stage.told("message", name)), "the answer")


def test_agents_that_are_gone_wait_for_the_login_and_cost_no_restart(team: Team) -> None:
    lose_login(team)
    wait_for(lambda: count_resting(team) == SESSIONS, "all to be noted")
    gone = team.agents[0]
    pid = team.stage.agent_pid(gone.issue)
    kill(pid)
    name = team.stage.session(gone.issue).name
    team.stage.sm("react", name)
    assert team.restarts() == []
    row = next(row for row in team.rows() if row["issue"] == gone.issue)
    assert (row["phase"], row["agent"]) == ("parked", False)
    team.log_in()
    wait_for(lambda: team.restarts() == [name], "its restart", 30.0)
    wait_for(team.resumed, "one of the others to try")
    assert len(team.resumed()) == 1


def test_another_key_in_the_configuration_starts_each_client_again(team: Team) -> None:
    lose_login(team, *team.agents[:2])
    wait_for(lambda: count_resting(team) == 2, "both to be noted", 30.0)
    config = yaml.safe_load(team.stage.config.read_text())
    config["agent"]["env"]["ANTHROPIC_API_KEY"] = "another"
    team.stage.config.write_text(yaml.safe_dump(config))
    both = [team.stage.session(one.issue).name for one in team.agents[:2]]
    wait_for(lambda: sorted(team.restarts()) == both, "both to be started again", 60.0)
    assert team.resumed() == []


def names(team: Team) -> list[str]:
    return [team.stage.session(one.issue).name for one in team.agents]


def count_resting(team: Team) -> int:
    found = account_faults.list_faults(team.stage.project.root)
    return len(found[0][1].sessions) if found else 0


def make_due(team: Team) -> None:
    """Let the pause be over."""
    root = team.stage.project.root
    [(ident, known)] = account_faults.list_faults(root)
    write_json(root.account_faults / ident, structs.replace(known, until=time.time() - 1))
    for one in team.agents:
        registry.poke(team.stage.session(one.issue).dir)


def works(agent: Hooked) -> None:
    """It has had an answer to a request of now: a tool has run, and then its turn has ended."""
    agent.call("post-tool-use", "PostToolUse", tool_name="Bash")
    agent.ends_turn()
