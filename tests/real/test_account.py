"""Faults of an account, by both real clients: what each tells, and that all go on again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sm.base.issue_id import IssueId
from sm.messages import screen_state
from sm.sessions import agent_state, plan, turn
from sm.sessions.agent_state import State
from sm.sessions.failure import Failure, FailureCause
from sm.sessions.history import StepVerb, fold
from sm.sessions.session import Session
from sm.store import journal
from sm.store.paths import Root
from sm.views.event_words import describe, name_event
from tests.e2e.stage import Stage
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Request, Tool, Turn
from tests.real.api import Failure as Refusal
from tests.real.client import Clients, seal
from tests.real.responses import exec_command
from tests.real.stages import make_real_stage
from tests.real.test_codex_delivery import send, state


def read_failure(target: Session) -> Failure | None:
    """As a pass reads it."""
    return turn.read(target.dir, screen_state.correct(target).told).failure


@pytest.mark.parametrize(
    ("status", "fault", "rests"),
    [
        (401, FailureCause.ACCESS, State.LIMITED),
        (429, FailureCause.LIMIT, State.LIMITED),
        (400, FailureCause.CONVERSATION, State.IDLE),
    ],
)
def test_a_turn_of_codex_that_fails_is_known_as_of_claude_code(
    target: Session, api: Api, status: int, fault: FailureCause, rests: State
) -> None:
    api.model = lambda _: Refusal(status, message="as the test says")
    send(target, "Begin.")
    found = wait_for(lambda: read_failure(target), "the failure", every_s=0.2)
    assert found
    assert (found.fault, found.count, state(target)) == (fault, 1, rests)
    assert str(status) in turn.read_notice(target.dir) or status == 400
    api.model = lambda _: Reply()
    send(target, "Again.")
    wait_for(lambda: len(api.main) > 1 and state(target) is State.IDLE, "the next turn")
    assert read_failure(target) is None
    assert agent_state.read(target.dir).shown is False


SESSIONS = 2
"""One tries again, and another waits for it. tests/e2e/test_account_faults.py has one more."""
PAUSE = "python3 -c 'import time; time.sleep(2)'"
WORK = {"claude": Tool.bash(PAUSE), "codex": exec_command(PAUSE)}
"""What an agent at work does, again and again."""
RESUMED = "[sm] Your last turn was cut short"
LOGINS = {"claude": ".claude/.credentials.json", "codex": ".codex/auth.json"}
ACCOUNTS = {"claude": "Claude Code (~/.claude)", "codex": "Codex (~/.codex)"}
OLD, NEW = "sk-ant-oat01-old", "sk-ant-oat01-new"
NOBODY_ELSE = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
"""A client that would renew its login somewhere else finds nobody there."""


def write_login(client: str, token: str) -> str:
    """What the client keeps on disk of somebody who has logged in."""
    if client == "codex":
        return json.dumps({"OPENAI_API_KEY": token})
    oauth = {
        "accessToken": token,
        "refreshToken": None,
        "expiresAt": int((time.time() + 86400) * 1000),
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
    return json.dumps({"claudeAiOauth": oauth})


@dataclass
class Team:
    """Issues that one of the real clients works on, with one login."""

    stage: Stage
    api: Api
    client: str

    def begin(self) -> None:
        """Have all of them taken up."""
        for _ in range(SESSIONS):
            self.stage.file_issue()
        self.stage.poll()

    def needs(self, kind: str) -> list[dict[str, Any]]:
        """What `sm needs` lists of that kind."""
        found = json.loads(self.stage.sm("needs", "--json", check=False).stdout)
        return [one for one in found if one["kind"] == kind]

    def phases(self) -> set[str]:
        """What the sessions are at, as `sm status` shows them."""
        shown = json.loads(self.stage.sm("status", "--json").stdout)
        return {row["phase"] for row in shown[0]["sessions"]}

    def comments(self) -> list[str]:
        """What people were told on all issues."""
        issues = self.stage.project.forge.issues
        found = (issues.read(one.issue).comments for one in self.stage.sessions())
        return [comment.body for comments in found for comment in comments]

    def restarts(self) -> list[IssueId]:
        """The issues whose client was started again."""
        return [
            session.issue
            for session in self.stage.sessions()
            for receipt in plan.read_receipts(session.dir)
            if receipt.verb is StepVerb.RECOVER
        ]

    def resumed(self) -> set[str]:
        """The conversations that were told to go on."""
        return {one.session for one in self.api.main if one.appearances(RESUMED)}

    def log_in(self, token: str) -> None:
        """What a person does in whichever terminal."""
        path = self.stage.folder / "client-home" / LOGINS[self.client]
        path.write_text(write_login(self.client, token))
        path.chmod(0o600)


@contextmanager
def make_team(client: str, pinned: Clients, api: Api, tmp_path: Path) -> Iterator[Team]:
    """Make a team of such clients, in a home where nobody has logged in yet."""
    stage = make_real_stage(client, pinned, api, tmp_path, {"max_sessions": SESSIONS})
    home, settings = tmp_path / "client-home", stage.project.settings
    folders = [settings.worktree(number) for number in range(1, SESSIONS + 1)]
    seal(home, *folders)
    trusted = [f'\n[projects.{json.dumps(str(one))}]\ntrust_level = "trusted"\n' for one in folders]
    toml = home / ".codex" / "config.toml"
    own = toml.read_text().replace('env_key = "ANTHROPIC_API_KEY"', "requires_openai_auth = true")
    toml.write_text(own + "".join(trusted[1:]))
    config = yaml.safe_load(stage.config.read_text())
    del config["agent"]["env"]["ANTHROPIC_API_KEY"]
    config["agent"]["env"] |= NOBODY_ELSE
    stage.config.write_text(yaml.safe_dump(config))
    yield Team(stage, api, client)
    for event in journal.read(stage.project.root.journal):
        print(f"{event.at:.3f} {event.session} {name_event(event)} {describe(event)}")
    stage.end()


@pytest.fixture(params=["claude", "codex"])
def team(
    request: pytest.FixtureRequest,
    pinned: Clients,
    api: Api,
    root: Root,
    tmux_socket: str,
    tmp_path: Path,
) -> Iterator[Team]:
    with make_team(request.param, pinned, api, tmp_path) as team:
        team.log_in(OLD)
        yield team


def test_sessions_that_lose_their_login_are_one_need_and_all_go_on_when_it_is_found(
    team: Team,
) -> None:
    def answer(request: Request) -> Turn:
        is_known = request.headers["authorization"].endswith(NEW)
        works = Reply("", tools=(WORK[team.client],))
        return works if is_known else Refusal(401, message="OAuth token has expired")

    team.api.model = answer
    team.begin()
    rests = f"{SESSIONS} sessions rest"
    wait_for(lambda: any(rests in one["text"] for one in team.needs("login")), rests, every_s=1)
    [need] = team.needs("login")
    assert need["text"].startswith(f"Login of {ACCOUNTS[team.client]}: no access to the API")
    assert "OAuth token has expired" in need["text"]
    assert team.phases() == {"parked"}
    wait_for(team.comments, "the message")
    assert team.restarts() == []
    team.log_in(NEW)
    wait_for(lambda: len(team.resumed()) == SESSIONS, "all to go on", every_s=0.5)
    wait_for(lambda: not team.needs("login"), "the end of the need", every_s=0.5)
    # Claude Code reads its login anew by itself. Codex goes on with the key of before.
    stale = list(range(1, SESSIONS + 1)) if team.client == "codex" else []
    wait_for(lambda: sorted(team.restarts()) == stale, "the restarts", every_s=0.5)
    wait_for(lambda: "parked" not in team.phases(), "all at work", every_s=0.5)
    assert sorted(team.restarts()) == stale
    assert len(team.comments()) == 1
    for session in team.stage.sessions():
        assert fold(plan.read_receipts(session.dir)).recoveries == 0


def test_one_of_them_whose_login_is_stale_is_started_again_before_anybody_is_asked(
    team: Team,
) -> None:
    def answer(request: Request) -> Turn:
        if "issue #1" in "\n".join(request.texts):
            refused = Refusal(401, message="OAuth token has expired")
            return Reply() if team.restarts() else refused
        return Reply("", tools=(WORK[team.client],))

    team.api.model = answer
    team.begin()
    seen: list[dict[str, Any]] = []

    def restarted() -> bool:
        seen.extend(team.needs("login"))
        return team.restarts() == [1]

    wait_for(restarted, "its client to be started again", every_s=1)
    again = "You take over"
    wait_for(lambda: any(one.appearances(again) for one in team.api.main), "its conversation")
    taken_over = next(one for one in team.api.main if one.appearances(again))
    assert taken_over.appearances("You work on issue #1"), "it is the conversation of before"
    wait_for(lambda: "parked" not in team.phases(), "all at work", every_s=0.5)
    assert seen == []
    assert team.comments() == []
    receipts = plan.read_receipts(team.stage.session(1).dir)
    assert fold(receipts).recoveries == 0
