"""Delivery to the real Codex; what the scripted API was sent is the proof."""

from __future__ import annotations

import os
import threading
import time

from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import delivery, observe, queue
from sm.messages.queue import Message, Mode
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from tests.helpers import wait_for
from tests.real.api import Api, Reply
from tests.real.codex import prompt
from tests.real.managed import ACCEPTED


def send(target: Session, text: str, mode: Mode = Mode.SEQUENTIAL) -> Outcome:
    return delivery.deliver(target, Message(id=queue.make_id(), text=text, mode=mode))


def state(target: Session) -> State:
    return agent_state.read(target.dir).state


def quiet(target: Session, for_s: float) -> None:
    """As if no hook had been called for so long."""
    directory, at = target.dir, time.time() - for_s
    now = agent_state.read(directory)
    directory.state.write_text(f"{now.state} {at:.6f} {now.context} {now.prompt}\n")
    os.utime(directory.events, (at, at))


def drained(target: Session) -> bool:
    delivery.drain(target)
    return delivery.is_at_rest(target)


def test_an_answer_under_way_is_not_interrupted_by_a_message(target: Session, api: Api) -> None:
    hold = threading.Event()
    api.say(Reply("A very long story,\ntold slowly,\nto its end.", hold=hold))
    assert send(target, "Begin.") == ACCEPTED
    wait_for(lambda: len(api.main) == 1, "the request")
    wait_for(lambda: prompt(target) == "idle", "a prompt that looks idle")
    assert send(target, "Next.") == Outcome(Status.WAITING, Refusal.BUSY)
    assert state(target) is State.BUSY
    quiet(target, observe.AT_WORK_S + 5)  # its screen alone tells then
    assert delivery.drain(target) is Refusal.BUSY
    hold.set()
    wait_for(lambda: drained(target), "the message")
    wait_for(lambda: api.appearances("Next."), "its arrival")
    assert api.main[1].said[-1] == "Next."


def test_text_that_it_would_act_upon_arrives_as_text(target: Session, api: Api) -> None:
    for count, text in enumerate(("exit", "quit", "/clear", "!id", "1. Yes"), 1):
        assert send(target, text) == ACCEPTED
        wait_for(lambda count=count: len(api.main) == count, "the request")  # type: ignore[misc]
        assert api.appearances(text)
        wait_for(lambda: state(target) is State.IDLE, "the end of the turn")
        wait_for(lambda: prompt(target) == "idle", "its prompt")


def test_a_text_that_is_too_long_for_a_hook_arrives_whole(target: Session, api: Api) -> None:
    """The hook says so, or it would tell the agent that it was damaged."""
    text = "1. " + "\n".join(f"{number} 'q' \"d\" $x \\ é ✓ 👍" for number in range(300))
    assert send(target, text) == ACCEPTED
    wait_for(lambda: api.appearances(text), "its arrival")
    assert api.appearances("was damaged") == 0


def test_an_urgent_message_interrupts(target: Session, api: Api) -> None:
    hold = threading.Event()
    api.say(Reply("A very long story,\ntold slowly,\nto its end.", hold=hold))
    assert send(target, "Begin.") == ACCEPTED
    wait_for(lambda: len(api.main) == 1, "the request")
    wait_for(lambda: prompt(target) == "idle", "a prompt that looks idle")
    assert send(target, "Stop that.", Mode.URGENT) == ACCEPTED
    wait_for(lambda: api.appearances("Stop that."), "its arrival")
    hold.set()
    wait_for(lambda: drained(target), "rest")
    assert api.appearances("Stop that.") == 1
