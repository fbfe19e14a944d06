"""What a person does in the real client's terminal and no hook tells: the screen decides."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import wait
from sm.sessions import activity, agent_state
from sm.sessions.agent_state import State
from sm.sessions.signs import DIALOG_PATIENCE_S
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Tool
from tests.real.managed import ACCEPTED, Managed

QUESTION = {
    "question": "Which one?",
    "header": "Choice",
    "multiSelect": False,
    "options": [{"label": name, "description": "as it says"} for name in ("This", "That")],
}
ASK = Tool("AskUserQuestion", {"questions": [QUESTION]})
TOUCH = Tool.bash("touch allowed")
SOON_S = 15.0
"""Where nothing looks it is a minute, else about one second on a machine that is not loaded."""


@pytest.fixture
def asking(unstarted: Managed) -> Managed:
    """A client that asks before it runs anything, with its monitor."""
    unstarted.options = ("--permission-mode", "default")
    unstarted.start()
    unstarted.watch()
    return unstarted


def opens_dialog(managed: Managed, api: Api, tool: Tool) -> None:
    """Have the agent ask, and its dialog be on the screen for longer than it takes to be drawn."""
    api.say(Reply("", (tool,)))
    assert managed.send("Begin.") == ACCEPTED
    managed.wait_state(State.DIALOG)
    managed.wait_screen(lambda screen: screen.prompt == "dialog", "the dialog")
    at = agent_state.read(managed.session.dir).since
    wait_for(lambda: time.time() > at + 5, "a while")


def delay(managed: Managed, done: Callable[[], object]) -> float:
    began = time.monotonic()
    managed.keys("Escape")
    wait_for(done, "what comes of it")
    return time.monotonic() - began


@pytest.mark.parametrize("tool", [ASK, TOUCH], ids=lambda tool: tool.name)
def test_a_dialog_that_a_person_has_dismissed_is_over_and_a_message_comes_soon_after_it(
    asking: Managed, api: Api, tool: Tool
) -> None:
    opens_dialog(asking, api, tool)
    assert activity.describe_activity(asking.session) == "dialog"
    took_s = delay(asking, lambda: activity.describe_activity(asking.session) == "idle")
    print(f"{took_s:.2f} s")
    assert took_s < SOON_S
    assert wait.await_event(asking.session, wait.AwaitedEvent.IDLE, 10.0)
    asking.wait_screen(lambda screen: screen.prompt == "idle", "an idle prompt")
    opens_dialog(asking, api, tool)
    assert asking.send("Later.") == Outcome(Status.WAITING, Refusal.DIALOG)
    wait_for(asking.session.dir.screen.exists, "the monitor to look")
    took_s = delay(asking, lambda: api.appearances("Later."))
    print(f"{took_s:.2f} s")
    assert took_s < SOON_S
    wait_for(lambda: not asking.session.dir.screen.exists(), "the end of the looking")


def test_a_message_comes_soon_after_a_person_has_left_copy_mode(managed: Managed, api: Api) -> None:
    managed.watch()
    pane = managed.agent.pane_id
    managed.tmux.command("copy-mode", "-t", pane)
    assert managed.send("Later.") == Outcome(Status.WAITING, Refusal.MODE)
    hooked = ("show-hooks", "-p", "-t", pane)
    wait_for(lambda: "if-shell" in managed.tmux.command(*hooked), "the monitor to look")
    at = time.time()
    wait_for(lambda: time.time() > at + 12, "a while")
    began = time.monotonic()
    managed.tmux.command("send-keys", "-t", pane, "-X", "cancel")
    wait_for(lambda: api.appearances("Later."), "the message")
    print(f"{time.monotonic() - began:.2f} s")
    assert time.monotonic() - began < SOON_S


def test_a_dialog_that_nobody_touches_calls_for_no_look(asking: Managed, api: Api) -> None:
    opens_dialog(asking, api, ASK)
    wait_for(asking.session.dir.screen.exists, "the monitor to look")
    seen = asking.session.dir.seen.stat
    open_since = agent_state.read(asking.session.dir).since
    due = open_since + DIALOG_PATIENCE_S
    wait_for(lambda: seen().st_mtime > due, "the look that finds it open still")
    before, at = seen().st_mtime_ns, time.time()
    wait_for(lambda: time.time() > at + 5, "a while")
    assert seen().st_mtime_ns == before
    asking.keys("Down")
    wait_for(lambda: seen().st_mtime_ns != before, "a look")
    assert asking.state is State.DIALOG
