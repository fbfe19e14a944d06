"""Usage windows from the real clients: what the API tells them by headers holds their sessions."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.agent.codex_rollout import CodexLimits, Limit, read_limits
from sm.base.clock import format_time
from sm.issues.rules.allowance import LimitStage
from sm.plugins.windows import figures
from sm.plugins.windows.hold import UNHELD, judge_session
from sm.plugins.windows.rules import judge
from sm.sessions import agent_state, registry, window
from sm.sessions.agent_state import State
from sm.sessions.failure import SLACK_S, Usage, UsageLimit, parse_usage
from sm.sessions.session import Session
from sm.store.paths import Root
from tests.e2e.stage import Stage
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


def assert_held(session: Session, account: Path) -> None:
    """Its account is used up for issues. The session is a person's own: a person decides."""
    assert judge_session(session, 90) is UNHELD
    (folder, told), *others = figures.read_figures().accounts.items()
    assert (folder, others) == (str(account), [])
    held = judge(told.usage, told.at, time.time(), hold=90)
    assert held
    assert (held.stage, held.shown) == (LimitStage.HELD, "five hours: 94 % used")


def test_claude_code_tells_of_its_windows_with_each_answer(unstarted: Managed, api: Api) -> None:
    unstarted.variables |= SUBSCRIPTION
    unstarted.start()
    session = unstarted.session
    assert read_line(session) == Usage()
    for five in (0.424, 0.935):
        api.say(Reply(headers=tell_claude(five)))
        unstarted.send("Go on.")
        told = Usage(UsageLimit(five * 100, FIVE_RESET), UsageLimit(12, WEEK_RESET))
        wait_for(lambda told=told: read_line(session) == told, "the figures in the line")  # type: ignore[misc]
    assert_held(session, unstarted.folder / "home" / ".claude")


def test_codex_tells_of_them_in_its_rollout(target: Session, api: Api, tmp_path: Path) -> None:
    api.model = lambda _: Reply(headers=tell_codex(94.5, 12))
    send(target, "Begin.")
    wait_for(lambda: agent_state.read(target.dir).state is State.IDLE, "the end of the turn")
    rollout = window.read(target.dir).conversation
    assert rollout
    told = CodexLimits(Limit(94.5, FIVE_RESET), Limit(12, WEEK_RESET))
    wait_for(lambda: read_limits(rollout) == told, "the figures in the rollout")
    assert_held(target, tmp_path / "codex" / ".codex")
    assert read_line(target).five_hours == UsageLimit(94.5, FIVE_RESET)


class Subscription:
    """A model that says what is used of its window; the turn of issue 2 `waits` until `ends`.

    `resets_at` is in seconds since 1970. Then another window begins, of which little is used.
    """

    def __init__(self, api: Api) -> None:
        """Little is used."""
        self.percent, self.resets_at = 3.0, FIVE_RESET
        self.waits, self.ends = threading.Event(), threading.Event()
        api.model = self

    def __call__(self, request: Request) -> Reply:
        """Answer, and say what is used."""
        if "issue #2" not in "\n".join(request.texts) or self.ends.is_set():
            return Reply(headers=self._tell())
        if any("begun" in text for text in request.texts):
            self.waits.set()
            self.ends.wait(120)  # before its headers, which say what is used by then
            return Reply("It ends as it was to end.", headers=self._tell())
        return Reply("", tools=(Tool.bash("echo begun"),), headers=self._tell())

    def _tell(self) -> dict[str, str]:
        if time.time() >= self.resets_at:
            return tell_claude(0.01, reset=self.resets_at + 5 * HOUR_S)
        return tell_claude(self.percent / 100, reset=self.resets_at)


@pytest.fixture
def on_hold(
    claude: Path, api: Api, root: Root, tmux_socket: str, tmp_path: Path
) -> Iterator[AtWork]:
    """An installation that leaves the last tenth of a window alone."""
    options = ("--dangerously-skip-permissions",)
    settings = {"limits": {"hold": 90}}
    yield from run_issues(claude, api, tmp_path, options, SUBSCRIPTION, settings)


def test_a_hold_waits_for_the_turn_keeps_all_sessions_and_ends_at_the_reset(
    on_hold: AtWork, api: Api
) -> None:
    model, stage = Subscription(api), on_hold.stage
    on_hold.begin()
    wait_for(lambda: on_hold.state is State.IDLE, "the end of the first turn")
    stage.write_phase(1, "PHASE:escalate\nReason: which colour?")
    on_hold.wait_phase("escalated")
    model.percent = 94
    second = stage.session(begin_another(stage))
    first = stage.session(1)
    wait_for(second.dir.braked.exists, "the hold of who has told")
    wait_for(first.dir.braked.exists, "the hold of the other session of the account")
    wait_for(model.waits.is_set, "its turn, which goes on")
    assert agent_state.read(second.dir).state is State.BUSY
    for session in (first, second):
        stage.sm("send", session.address, f"Then do more in {session.issue}.")
    (seen,) = json.loads(stage.sm("status", "--json").stdout)
    clock = format_time(FIVE_RESET + SLACK_S, time.time())
    told = f"five hours: 94 % used; goes on at {clock}"
    assert seen["sessions"][1]["waits_for"] == f"held: {told}"
    asked = len(api.main)
    model.resets_at = int(time.time()) + 10  # after it a client tells nothing of the window
    model.ends.set()
    wait_for(lambda: agent_state.read(second.dir).state is State.IDLE, "the end of the turn")
    ends_at = model.resets_at
    wait_for(lambda: read_line(second).five_hours.resets_at == ends_at, "the earlier reset")
    for session in (first, second):
        registry.poke(session.dir)  # who waits looks again at the reset that was told first
    wait_for(lambda: len(api.main) > asked, "it to go on", 60.0)
    went_on_at = api.main[asked].at_s - time.monotonic() + time.time()
    assert went_on_at >= ends_at + SLACK_S
    for session in (first, second):
        more = f"Then do more in {session.issue}."
        wait_for(lambda more=more: count(api, more) == 1, more)  # type: ignore[misc]
    assert any("as it was to end." in text for one in api.main for text in one.texts)
    assert not any("interrupted by user" in text for one in api.main for text in one.texts)


def begin_another(stage: Stage) -> int:
    """Have one more issue taken up."""
    issue = stage.file_issue()
    stage.poll()
    return issue


def count(api: Api, text: str) -> int:
    """In how many conversations it was said, once in each."""
    return sum(
        max(one.appearances(text) for one in api.main if one.session == session)
        for session in {one.session for one in api.main}
    )
