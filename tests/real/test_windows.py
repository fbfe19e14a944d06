"""Usage windows from the real clients: what the API tells them by headers holds their sessions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.agent.codex_limits import Limit, Limits, read_limits
from sm.plugins.windows import figures
from sm.plugins.windows.holding import judge_session
from sm.sessions import agent_state, window
from sm.sessions.agent_state import State
from sm.sessions.failure import SLACK_S, Allowance, Usage, parse_usage
from sm.sessions.session import Session
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Request, Tool
from tests.real.managed import Managed
from tests.real.test_codex_delivery import send
from tests.real.test_limits import SUBSCRIPTION, AtWork, run_issues

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
    unstarted.variables |= SUBSCRIPTION
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


class Subscription:
    """A model that counts what is used: `percent` of a window that ends `lasts_s` after it began.

    The turn of issue 1 goes on until `ends` is set.
    """

    def __init__(self, api: Api, lasts_s: float) -> None:
        """Nothing is used."""
        self.percent, self.lasts_s = 3.0, lasts_s
        self.ends_at = 0.0
        self.ends = threading.Event()
        api.model = self

    def __call__(self, request: Request) -> Reply:
        """Answer, and say what is used by now."""
        reset = int(time.time() + self.lasts_s) if not self.ends_at else int(self.ends_at)
        self.ends_at = float(reset)
        headers = tell_claude(self.percent / 100, reset=reset)
        if "issue #1" not in "\n".join(request.texts) or self.ends.is_set():
            return Reply(headers=headers)
        if any("begun" in text for text in request.texts):
            return Reply("It ends\nas it was to end.\n", hold=self.ends, headers=headers)
        return Reply("", tools=(Tool.bash("echo begun"),), headers=headers)


@pytest.fixture
def on_hold(
    claude: Path, api: Api, root: Root, tmux_socket: str, tmp_path: Path
) -> Iterator[AtWork]:
    """An installation that leaves the last tenth of a window alone."""
    options = ("--dangerously-skip-permissions",)
    settings = {"limits": {"hold": 90}}
    yield from run_issues(claude, api, tmp_path, options, SUBSCRIPTION, settings)


def test_a_hold_waits_for_the_turn_and_ends_at_the_reset(on_hold: AtWork, api: Api) -> None:
    model = Subscription(api, lasts_s=10)
    model.percent = 94
    on_hold.begin()
    session = on_hold.stage.session(1)
    wait_for(session.dir.braked.exists, "the hold")
    assert on_hold.state is State.BUSY
    on_hold.stage.sm("send", "harb#1", "Then do more.")
    model.ends.set()
    wait_for(lambda: on_hold.state is State.IDLE, "the end of the turn")
    asked = len(api.main)
    phase, waits_for = on_hold.waits_for()
    until = time.strftime("%H:%M", time.localtime(model.ends_at + SLACK_S))
    assert (phase, waits_for) == ("parked", f"held: five hours: 94 % used; goes on at {until}")
    model.percent = 1
    wait_for(lambda: len(api.main) > asked, "it to go on", 60.0)
    assert time.time() >= model.ends_at + SLACK_S
    wait_for(lambda: api.appearances("Then do more.") == 1, "the message")
    assert api.appearances("as it was to end.") == 1
    assert not api.appearances("interrupted")
    wait_for(lambda: not session.dir.braked.exists(), "the end of the hold")
