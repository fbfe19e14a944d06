"""Who watches the terminal of a real client sees what its hooks have told the agent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from sm.adapters.emulator import show
from sm.adapters.tmux import Tmux
from sm.messages import delivery, queue
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent as agents
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Tool
from tests.real.client import Clients
from tests.real.lasting import begin_anew, lasting_session
from tests.real.managed import ACCEPTED, Managed, until
from tests.real.responses import exec_command


@pytest.fixture(scope="module")
def listener(pinned: Clients, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    """A session whose agent is the client, with room for sixty lines: it shows no more."""
    with lasting_session(pinned.claude, tmp_path_factory.mktemp("shown")) as managed:
        managed.start()
        size = ("-x", "120", "-y", "120")
        managed.tmux.command("resize-window", "-t", managed.agent.pane_id, *size)
        yield managed


@pytest.fixture
def managed(listener: Managed) -> Managed:
    """The same, idle in a new context."""
    begin_anew(listener)
    return listener


def rows(count: int) -> str:
    """A text of so many lines, which is not typed as it is."""
    return "\n".join(f"row {number} of\tit" for number in range(count))


def wait_shown(tmux: Tmux, session: Session, condition: Callable[[str], bool]) -> str:
    """What the terminal shows once that holds: each row without what is around it."""
    known = agents.load(session.dir)
    assert known

    def look() -> str:
        found = "\n".join(row.strip() for row in tmux.capture(known.pane_id).splitlines())
        return found if condition(found) else ""

    return wait_for(look, f"it on the screen: {tmux.capture(known.pane_id)}")


def last_id(managed: Managed) -> str:
    return queue.list_messages(managed.session.dir, MessageFolder.DONE)[-1].id


def test_what_comes_with_a_prompt_is_shown_below_it(managed: Managed) -> None:
    assert managed.send(rows(12)) == ACCEPTED
    screen = wait_shown(managed.tmux, managed.session, lambda shown: "row 11" in shown)
    assert "UserPromptSubmit says: row 0" in screen
    assert "\nrow 5 of" in screen
    managed.wait_state(State.IDLE)
    assert managed.api.appearances(rows(12)) == 1
    assert managed.api.appearances("row 7 of") == 1, "the model gets it twice"


def test_of_a_long_text_the_beginning_is_shown_and_how_to_read_it(managed: Managed) -> None:
    assert managed.send(rows(60)) == ACCEPTED
    whole = f"… all of it: sm queue s-real --show {last_id(managed)}"
    screen = wait_shown(managed.tmux, managed.session, lambda shown: whole in shown)
    assert "\nrow 39 of" in screen
    assert "row 40 of" not in screen
    managed.wait_state(State.IDLE)
    assert (managed.api.appearances(rows(60)), managed.api.appearances(whole)) == (1, 0)


def test_the_task_is_shown_below_the_line_that_stands_for_it(unstarted: Managed) -> None:
    unstarted.start(rows(12))
    screen = wait_shown(unstarted.tmux, unstarted.session, lambda shown: "row 11" in shown)
    assert "UserPromptSubmit says: row 0" in screen
    wait_for(lambda: unstarted.api.appearances("row 7 of") == 1, "the task")


def test_what_comes_with_a_tools_result_is_shown_below_it(managed: Managed) -> None:
    go = managed.session.record.cwd / "go"
    managed.api.say(Reply("", (Tool.bash(until(go)),)))
    managed.send("Begin.")
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    message = Message(
        id=queue.make_id(), text=rows(3), mode=Mode.STEER, source="a person", summary="row 0"
    )
    delivery.deliver(managed.session, message)
    go.touch()
    screen = wait_shown(managed.tmux, managed.session, lambda shown: "row 2 of" in shown)
    assert "PostToolUse:Bash says: [sm] From a person:\nrow 0 of" in screen
    managed.wait_state(State.IDLE)
    assert managed.api.main[-1].appearances("row 1 of") == 1
    assert managed.api.appearances("From a person") == 0


def test_what_comes_at_a_turns_end_is_shown_by_the_client_itself(managed: Managed) -> None:
    """All of it, so our hook says no more."""
    hold = threading.Event()
    managed.api.say(Reply("Working on it, at length.", hold=hold))
    managed.send("Begin.")
    wait_for(lambda: managed.api.main, "the request")
    managed.send(rows(60))
    hold.set()
    screen = wait_shown(managed.tmux, managed.session, lambda shown: "row 59" in shown)
    assert "Stop hook says: row 0" in screen
    assert screen.count("row 30 of") == 1
    managed.wait_state(State.IDLE)
    assert managed.api.main[-1].appearances("row 30 of") == 1


def test_codex_shows_it_too(target: Session, api: Api) -> None:
    go = target.record.cwd / "go"
    api.say(Reply(tools=(exec_command(f"until test -e '{go}'; do sleep 0.05; done"),)))
    first = Message(id=queue.make_id(), text="/is no command:\n" + rows(3))
    assert delivery.deliver(target, first) == ACCEPTED
    screen = wait_shown(target.tmux, target, lambda shown: "row 2 of" in shown)
    assert "Hook · /is no command:\nrow 0 of" in screen
    steer = Message(id=queue.make_id(), text="Mind the gap.", mode=Mode.STEER)
    delivery.deliver(target, steer)
    go.touch()
    wait_shown(target.tmux, target, lambda shown: "Hook · Mind the gap." in shown)
    wait_for(lambda: api.appearances("Mind the gap."), "its arrival")


def test_the_log_of_a_run_tells_each_line_once(unstarted: Managed) -> None:
    managed = unstarted
    managed.start()
    for turn in range(6):
        managed.wait_screen(lambda screen: screen.prompt == "idle", "an idle prompt")
        text = rows(12).replace("it", f"turn {turn}")  # equal turns could be taken for a redrawing
        assert managed.send(f"turn {turn}\n{text}") == ACCEPTED
        managed.wait_state(State.IDLE)

    def logged() -> list[str]:
        found = [line.strip() for line in show(managed.session.terminal_log.read_bytes())]
        _, told, after = "\n".join(found).rpartition("says: turn 5\n")
        return found if told and "row 11 of" in after else []

    lines = wait_for(logged, "the last turn in the log")
    for turn in range(6):
        told = [line for line in lines if line.endswith(f"says: turn {turn}")]
        assert len(told) == 1, "\n".join([*lines, f"{turn}: {told}"])
    assert sum(line.startswith("row 5 of") for line in lines) == 6, "\n".join(lines)
    assert sum("bypass permissions on" in line for line in lines) <= 3, "\n".join(lines)
