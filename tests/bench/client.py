"""The pinned Claude Code for a benchmark: a session of sm and its monitor, a scripted API."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from sm.adapters.tmux import Tmux
from sm.sessions.agent_state import State
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Request
from tests.real.client import clients
from tests.real.managed import Managed

LOOK_S = 0.001
USUAL_PAUSE_S = 0.3
"""Between text and Enter, where a script types both: with less, Enter is lost now and then."""


@contextmanager
def real_agents() -> Iterator[Callable[[Path], Managed] | None]:
    """What starts a session in a folder; None where there is no client and nothing to get it by."""
    try:
        program = clients().claude
    except pytest.skip.Exception as reason:
        print(f"not measured: {reason}", file=sys.stderr)
        yield None
        return
    with ExitStack() as ends:
        yield lambda folder: ends.enter_context(_session(program, folder))


@contextmanager
def _session(program: Path, folder: Path) -> Iterator[Managed]:
    root = Root(folder / "state")
    root.path.mkdir(parents=True, mode=0o700)
    os.environ["SM_STATE_ROOT"] = str(root.path)
    with Api() as api:
        tmux = Tmux(os.environ["SM_TMUX_SOCKET"])
        managed = Managed(program, tmux, root, api, folder / "managed")
        managed.start()
        managed.watch()
        try:
            yield managed
        finally:
            managed.end()


def wait_ready(managed: Managed) -> None:
    """Wait until its turn is over, by its hooks and on its screen, and nothing is under way."""
    managed.drain_until_empty()
    managed.wait_state(State.IDLE)
    managed.wait_screen(lambda screen: screen.prompt == "idle" and not screen.draft, "the prompt")


def asked(managed: Managed, text: str) -> Request:
    """The first request that holds `text`, once the model was asked it."""

    def found() -> Request | None:
        return next((one for one in managed.api.main[-8:] if one.appearances(text)), None)

    request = wait_for(found, f"a request with '{text}'", 30.0)
    assert request
    return request


def type_by_hand(managed: Managed, text: str) -> None:
    """As a script does that knows no better."""
    managed.type(text)
    time.sleep(USUAL_PAUSE_S)
    managed.keys("Enter")


_turns = itertools.count(1)


def hold_turn(managed: Managed) -> threading.Event:
    """Let the agent be at work; its answer ends when the event is set."""
    hold, text = threading.Event(), f"Begin the long turn {next(_turns)}."
    managed.api.say(Reply("A long answer that is told slowly.", hold=hold))
    managed.send(text)
    asked(managed, text)
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    return hold
