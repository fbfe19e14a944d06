"""Contexts of the real client that are replaced: by hand, at an agent's wish, by a cycle."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from statistics import median

from sm.context.health_log import read_recent
from sm.context.rotation import Cause
from sm.context.run import begin_cycle
from sm.sessions import agent_state, registry
from sm.sessions.agent_state import State
from tests.bench.client import asked, real_agents, wait_ready
from tests.bench.measure import Bench, Figure, in_turns
from tests.helpers import wait_for
from tests.real.api import Reply, Tool
from tests.real.handoffs import Writer
from tests.real.managed import Managed

BY_HAND = "/clear and a prompt, pasted as soon as it can be: asked"
FIXED = "fixed waits: 2 s, 3 s and 60 s, and half of 30 s for the document"
FIXED_MS = (2 + 3 + 60 + 30 / 2) * 1000
OVER_MS = 500
"""So much longer than the client's own clear a rotation may take."""

_numbers = itertools.count(1)


def figures(bench: Bench) -> Iterator[Figure]:
    """Each in turns, in one client; then whole cycles."""
    with real_agents() as start:
        if start is None:
            return
        managed = start(bench.folder)
        writer = managed.api.model = Writer(bench.folder / "notes.md")
        own, by_hand = in_turns(
            bench.rounds(20, 5),
            lambda: _handoff(managed, writer),
            lambda: _by_hand(managed),
        )
        cycles = [_cycle(managed) for _ in range(bench.rounds(5, 2))]
    yield Figure(
        name="turn ended to new context's prompt asked: sm handoff",
        unit="ms",
        samples=own,
        budget=median(by_hand) + OVER_MS,
        beside=BY_HAND,
        others=by_hand,
    )
    yield Figure(
        name="cycle: from its trigger to an agent that works on",
        unit="ms",
        samples=cycles,
        beside=FIXED,
        others=[FIXED_MS],
    )


def _handoff(managed: Managed, writer: Writer) -> float:
    """From the end of the turn in which the agent has called `sm handoff`."""
    wait_ready(managed)
    notes = managed.folder / f"notes-{next(_numbers)}.md"
    call = f"echo 'What is next.' >{notes} && sm handoff {notes}"
    hold = threading.Event()
    writer.turns.extend([Reply("", (Tool.bash(call),)), Reply("It is written down.", hold=hold)])
    managed.send(f"Hand it off {notes.name}.")
    wait_for(lambda: managed.session.dir.hold.exists(), "the wish")
    managed.wait_screen(lambda screen: screen.prompt == "busy", "the last words")
    ended = time.monotonic()
    hold.set()
    return (asked(managed, f"Read {notes} and continue").at_s - ended) * 1000


def _by_hand(managed: Managed) -> float:
    """The client's own time: `/clear`, then a prompt as soon as it is in another context."""
    wait_ready(managed)
    text, before = f"Go on with number {next(_numbers)}.", agent_state.read(managed.session.dir)
    started = time.monotonic()
    managed.paste("/clear")
    managed.keys("Enter")

    def cleared() -> bool:
        return agent_state.read(managed.session.dir).context != before.context

    wait_for(cleared, "another context", every_s=0.0)
    wait_for(lambda: managed.screen().prompt == "idle", "the prompt", every_s=0.0)
    managed.paste(text)
    managed.keys("Enter")
    return (asked(managed, text).at_s - started) * 1000


def _cycle(managed: Managed) -> float:
    """With an agent that writes the document at once."""
    wait_ready(managed)
    count = len(list(read_recent(managed.root, managed.name)))
    started = time.monotonic()
    assert begin_cycle(managed.session, Cause.COMMAND, 87.0)
    registry.poke(managed.session.dir)
    wait_for(lambda: len(list(read_recent(managed.root, managed.name))) > count, "its end", 120.0)
    took = (time.monotonic() - started) * 1000
    managed.wait_state(State.IDLE)
    return took
