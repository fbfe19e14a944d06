"""Clients that begin at their menu for a login: one fault of the account, by both real clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from sm.sessions import plan
from sm.sessions.history import fold
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.real.api import Api, Reply
from tests.real.client import Clients
from tests.real.hello import greet
from tests.real.test_account import ACCOUNTS, NEW, SESSIONS, WORK, Team, make_team

MENUS = {
    "claude": "Choose the text style that looks best with your terminal",
    "codex": "Sign in with ChatGPT to use Codex as part of your paid plan",
}
BEGUN = "hasCompletedOnboarding"


@pytest.fixture(params=["claude", "codex"])
def newcomers(
    request: pytest.FixtureRequest,
    pinned: Clients,
    api: Api,
    root: Root,
    tmux_socket: str,
    tmp_path: Path,
) -> Iterator[Team]:
    with ExitStack() as stack:
        variables = stack.enter_context(greet(tmp_path))
        team = stack.enter_context(make_team(request.param, pinned, api, tmp_path))
        config = yaml.safe_load(team.stage.config.read_text())
        config["agent"]["env"] |= variables
        team.stage.config.write_text(yaml.safe_dump(config))
        has_begun(team, False)
        yield team


def has_begun(team: Team, begun: bool) -> None:
    """Say whether somebody has been through the first questions of Claude Code."""
    path = team.stage.folder / "client-home" / ".claude.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {BEGUN: begun}))


def list_begun(team: Team) -> set[str]:
    """The conversations that know of their issue."""
    return {one.session for one in team.api.main if one.appearances("issue #")}


def test_clients_that_begin_at_their_menu_are_one_need_and_all_begin_when_somebody_logs_in(
    newcomers: Team,
) -> None:
    team = newcomers
    team.api.model = lambda _: Reply("", tools=(WORK[team.client],))
    team.begin()
    rests = f"{SESSIONS} sessions rest"
    wait_for(lambda: any(rests in one["text"] for one in team.needs("login")), rests, every_s=1)
    [need] = team.needs("login")
    assert need["text"].startswith(f"Login of {ACCOUNTS[team.client]}: no access to the API")
    assert MENUS[team.client] in need["text"]
    assert team.needs("dialog") == []
    assert team.phases() == {"parked"}
    wait_for(team.comments, "the message")
    assert team.restarts() == []
    has_begun(team, True)
    team.log_in(NEW)
    everybody = list(range(1, SESSIONS + 1))
    wait_for(lambda: sorted(team.restarts()) == everybody, "all to begin", every_s=0.5)
    wait_for(lambda: not team.needs("login"), "the end of the need", every_s=0.5)
    wait_for(lambda: "parked" not in team.phases(), "all at work", every_s=0.5)
    wait_for(lambda: len(list_begun(team)) == SESSIONS, "all to have their issue", every_s=0.5)
    assert sorted(team.restarts()) == everybody
    assert len(team.comments()) == 1
    for session in team.stage.sessions():
        assert fold(plan.read_receipts(session.dir)).recoveries == 0
