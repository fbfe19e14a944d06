"""Delivery to the real Codex; what the scripted API was sent is the proof."""

from __future__ import annotations

import json
import os
import shlex
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.adapters.agent.codex import CODEX
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.tmux import Tmux
from sm.config.schema import Agent as Settings
from sm.session import agent as agents
from sm.session import agentstate, delivery, queue, registry
from sm.session.agentstate import State
from sm.session.delivery import Outcome, Reason, Status
from sm.session.launchfiles import Launch
from sm.session.queue import Message, Mode
from sm.session.registry import AdHocSession
from sm.session.submission import Target
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.real.api import Api, Reply
from tests.real.client import Clients, environment
from tests.real.codex import CONFIG
from tests.real.managed import ACCEPTED


@pytest.fixture
def target(pinned: Clients, tmux: Tmux, root: Root, api: Api, tmp_path: Path) -> Iterator[Target]:
    """A session of sm whose agent is an idle Codex."""
    work, home = tmp_path / "work", tmp_path / "codex"
    work.mkdir()
    (home / ".codex").mkdir(parents=True)
    config = CONFIG.format(url=api.url, cwd=json.dumps(str(work)))
    (home / ".codex" / "config.toml").write_text(config)
    command = shlex.join([str(pinned.codex), *CODEX.command.split()[1:]])
    session = AdHocSession(
        name="s-codex",
        provider=CODEX.name,
        cwd=work,
        config=None,
        state_root=root.path,
        created_at=time.time(),
        command=command,
    )
    registry.create(root, session)
    variables = environment(home, api.url)
    for name in ("TERM", "PATH"):
        variables.pop(name)
    agents.launch(
        tmux, session, Launch(Settings(command=command, env=variables), CODEX), generation=1
    )
    found = Target(tmux, session, CODEX)
    wait_for(lambda: prompt(found) == "idle", "its prompt")
    yield found
    agents.stop(tmux, session)


def prompt(target: Target) -> str:
    known = agents.load(target.session.dir)
    assert known
    shown = target.tmux.look(known.pane_id, escapes=True)[1]
    return read_screen(CODEX, shown).prompt


def send(target: Target, text: str, mode: Mode = Mode.SEQUENTIAL) -> Outcome:
    return delivery.deliver(target, Message(id=queue.new_id(), text=text, mode=mode))


def state(target: Target) -> State:
    return agentstate.read(target.session.dir).state


def quiet(target: Target, for_s: float) -> None:
    """As if no hook had been called for so long."""
    directory, at = target.session.dir, time.time() - for_s
    now = agentstate.read(directory)
    directory.state.write_text(f"{now.state} {at:.6f} {now.context} {now.prompt}\n")
    os.utime(directory.events, (at, at))


def drained(target: Target) -> bool:
    delivery.drain(target)
    return delivery.is_at_rest(target)


def test_an_answer_under_way_is_not_interrupted_by_a_message(target: Target, api: Api) -> None:
    hold = threading.Event()
    api.say(Reply("A very long story,\ntold slowly,\nto its end.", hold=hold))
    assert send(target, "Begin.") == ACCEPTED
    wait_for(lambda: len(api.main) == 1, "the request")
    wait_for(lambda: prompt(target) == "idle", "a prompt that looks idle")
    assert send(target, "Next.") == Outcome(Status.WAITING, Reason.BUSY)
    assert state(target) is State.BUSY
    quiet(target, delivery.AT_WORK_S + 5)  # its screen alone tells then
    assert delivery.drain(target) is Reason.BUSY
    hold.set()
    wait_for(lambda: drained(target), "the message")
    wait_for(lambda: api.appearances("Next."), "its arrival")
    assert api.main[1].said[-1] == "Next."


@pytest.mark.parametrize("text", ["exit", "quit", "/clear", "!id", "1. Yes"])
def test_text_that_it_would_act_upon_arrives_as_text(target: Target, api: Api, text: str) -> None:
    assert send(target, text) == ACCEPTED
    wait_for(lambda: api.main, "the request")
    assert api.appearances(text)
    wait_for(lambda: state(target) is State.IDLE, "the end of the turn")


def test_an_urgent_message_interrupts(target: Target, api: Api) -> None:
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
