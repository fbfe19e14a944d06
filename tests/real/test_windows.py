"""Usage windows from the real clients: what the API tells them by headers holds their sessions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sm.adapters.agent.codex_limits import Limit, Limits, read_limits
from sm.plugins.windows import figures
from sm.plugins.windows.holding import judge_session
from sm.sessions import agent_state, window
from sm.sessions.agent_state import State
from sm.sessions.failure import Allowance, Usage, parse_usage
from sm.sessions.session import Session
from tests.helpers import wait_for
from tests.real.api import Api, Reply
from tests.real.managed import Managed
from tests.real.test_codex_delivery import send

HOUR_S, DAY_S = 3600, 86400
NOW = int(time.time())
FIVE_RESET, WEEK_RESET = NOW + 2 * HOUR_S, NOW + 3 * DAY_S


def tell_claude(five: float, week: float = 0.12, reset: int = FIVE_RESET) -> dict[str, str]:
    """The headers of an answer of Anthropic's, to a subscription."""
    return {
        "anthropic-ratelimit-unified-status": "allowed",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "anthropic-ratelimit-unified-reset": str(reset),
        "anthropic-ratelimit-unified-5h-status": "allowed",
        "anthropic-ratelimit-unified-5h-utilization": str(five),
        "anthropic-ratelimit-unified-5h-reset": str(reset),
        "anthropic-ratelimit-unified-7d-status": "allowed",
        "anthropic-ratelimit-unified-7d-utilization": str(week),
        "anthropic-ratelimit-unified-7d-reset": str(WEEK_RESET),
    }


def tell_codex(primary: float, secondary: float) -> dict[str, str]:
    """The headers of an answer of OpenAI's, to a subscription."""
    return {
        "x-codex-primary-used-percent": str(primary),
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(FIVE_RESET),
        "x-codex-secondary-used-percent": str(secondary),
        "x-codex-secondary-window-minutes": "10080",
        "x-codex-secondary-reset-at": str(WEEK_RESET),
    }


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "AGAIN_S", -1.0)


def read_line(session: Session) -> Usage:
    return parse_usage(session.dir.usage.read_text()) if session.dir.usage.exists() else Usage()


def test_claude_code_tells_of_its_windows_with_each_answer(unstarted: Managed, api: Api) -> None:
    unstarted.variables |= {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "any"}
    unstarted.start()
    session = unstarted.session
    assert read_line(session) == Usage()
    for five in (0.424, 0.935):
        api.say(Reply(headers=tell_claude(five)))
        unstarted.send("Go on.")
        told = Usage(Allowance(five * 100, FIVE_RESET), Allowance(12, WEEK_RESET))
        wait_for(lambda told=told: read_line(session) == told, "the figures in the line")  # type: ignore[misc]
    held = judge_session(session, 90)
    assert held
    assert held.shown == "five hours: 94 % used"
    folder = unstarted.folder / "home" / ".claude"
    assert list(figures.read_figures().accounts) == [str(folder)]


def test_codex_tells_of_them_in_its_rollout(target: Session, api: Api, tmp_path: Path) -> None:
    api.model = lambda _: Reply(headers=tell_codex(94.5, 12))
    send(target, "Begin.")
    wait_for(lambda: agent_state.read(target.dir).state is State.IDLE, "the end of the turn")
    rollout = window.read(target.dir).conversation
    assert rollout
    told = Limits(Limit(94.5, FIVE_RESET), Limit(12, WEEK_RESET))
    wait_for(lambda: read_limits(rollout) == told, "the figures in the rollout")
    held = judge_session(target, 90)
    assert held
    assert held.shown == "five hours: 94 % used"
    assert list(figures.read_figures().accounts) == [str(tmp_path / "codex" / ".codex")]
    assert read_line(target).five_hours == Allowance(94.5, FIVE_RESET)
