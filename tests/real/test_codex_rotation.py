"""Contexts of the real Codex that are replaced; it tells of a new one only with the next prompt."""

from __future__ import annotations

import shlex
import threading

from sm.base.refusal import Outcome, Refusal, Status
from sm.context import rotation_files
from sm.context.clear import clear
from sm.context.run import advance
from sm.messages import delivery, queue
from sm.messages.queue import Message
from sm.sessions import agent as agents
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.store import journal
from sm.views.event_words import describe
from tests.helpers import wait_for
from tests.real.api import Api, Reply
from tests.real.managed import ACCEPTED
from tests.real.responses import exec_command


def send(target: Session, text: str) -> Outcome:
    return delivery.deliver(target, Message(id=queue.make_id(), text=text))


def rotated(target: Session) -> bool:
    """Carry the rotation on, as a monitor does; whether it is over."""
    advance(target)
    return not rotation_files.is_wanted(target.dir)


def test_an_agent_that_hands_off_goes_on_in_a_new_context(target: Session, api: Api) -> None:
    notes = target.record.cwd / "notes.md"
    path = shlex.quote(str(notes))
    hold = threading.Event()
    api.say(
        Reply("", (exec_command(f"echo 'what is next' >{path}; sm handoff {path}"),)),
        Reply("It is written down.", hold=hold),
    )
    assert send(target, "Hand off.") == ACCEPTED
    wait_for(lambda: rotation_files.read_wish(target.dir), "the wish")
    old = agent_state.read(target.dir).context
    send(target, "For the next one.")
    assert not rotated(target)
    hold.set()
    wait_for(lambda: rotated(target), "the end of the rotation")
    go_on = f"Read {notes} and continue from where you left off."
    wait_for(lambda: any(one.said[-1:] == [go_on] for one in api.main), "its prompt")
    assert agent_state.read(target.dir).context != old
    assert "Hand off." not in api.main[-1].said
    wait_for(lambda: delivery.drain(target) is None, "what waited")
    wait_for(lambda: api.main[-1].said[-1:] == ["For the next one."], "its arrival")
    assert api.main[-1].said.count(go_on) == 1
    told = [describe(event) for event in journal.read(target.root.journal)]
    assert [line for line in told if line.startswith("clear")] == ["clear 1: taken"]


def test_a_clear_that_comes_before_the_turn_is_over_is_typed_again(
    target: Session, api: Api
) -> None:
    """Codex tells of a turn's end a moment before it takes the command, and says so."""
    hold = threading.Event()
    api.say(Reply("A long answer, of which half is printed.", hold=hold))
    assert send(target, "Begin.") == ACCEPTED
    wait_for(lambda: "A long answer" in capture(target), "half of the answer")
    context = agent_state.read(target.dir).context
    assert clear(target, "one.clear1", context) == Outcome(Status.WAITING, Refusal.BUSY)
    assert clear(target, "one.clear1", context) == Outcome(Status.WAITING, Refusal.BUSY)
    hold.set()
    wait_for(lambda: agent_state.read(target.dir).state is State.IDLE, "the turn's end")
    wait_for(lambda: clear(target, "one.clear1", context).status is Status.TYPED, "the clear")
    send(target, "Go on.")  # it may wait until the new context is on the screen
    wait_for(lambda: delivery.drain(target) is None, "its end")
    wait_for(lambda: api.main[-1].said[-1:] == ["Go on."], "its arrival")
    assert "Begin." not in api.main[-1].said


def capture(session: Session) -> str:
    known = agents.load(session.dir)
    assert known
    return session.tmux.capture(known.pane_id)
