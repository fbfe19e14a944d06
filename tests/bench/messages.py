"""Messages to the real client: from being sent to being accepted, and heard at a turn's end."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator

from sm.base.refusal import Refusal
from sm.sessions import registry
from tests.bench.client import asked, hold_turn, real_agents, type_by_hand, wait_ready
from tests.bench.measure import Bench, Figure, in_turns, run
from tests.helpers import wait_for
from tests.real.managed import ACCEPTED, Managed

BY_HAND = "send-keys, 0.3 s, Enter: asked"
AT_PROMPT = "paste when the prompt shows idle"

_numbers = itertools.count(1)


def figures(bench: Bench) -> Iterator[Figure]:
    """Each in turns with what is done by hand, in one client."""
    with real_agents() as start:
        if start is None:
            return
        managed = start(bench.folder)
        rounds = bench.rounds(20, 6)
        call, process, by_hand = in_turns(
            rounds,
            lambda: _call(managed),
            lambda: _process(managed),
            lambda: _by_hand(managed),
        )
        heard, pasted = in_turns(rounds, lambda: _after_turn(managed), lambda: _at_prompt(managed))
    for name, samples, beside, others in (
        ("message to an idle agent, accepted: call", call, BY_HAND, by_hand),
        ("message to an idle agent, accepted: sm send", process, BY_HAND, by_hand),
        ("turn ended to queued message heard", heard, AT_PROMPT, pasted),
    ):
        yield Figure(name=name, unit="ms", samples=samples, beside=beside, others=others)


def _text() -> str:
    return f"Message number {next(_numbers)} of this run."


def _call(managed: Managed) -> float:
    wait_ready(managed)
    started = time.monotonic()
    assert managed.send(_text()) == ACCEPTED
    return (time.monotonic() - started) * 1000


def _process(managed: Managed) -> float:
    wait_ready(managed)
    return run([sys.executable, "-Im", "sm", "send", managed.name, _text()]).wall_s * 1000


def _by_hand(managed: Managed) -> float:
    wait_ready(managed)
    text, started = _text(), time.monotonic()
    type_by_hand(managed, text)
    return (asked(managed, text).at_s - started) * 1000


def _after_turn(managed: Managed) -> float:
    """From the end of the model's stream to its next request, which holds the message."""
    wait_ready(managed)
    text, hold = _text(), hold_turn(managed)
    assert managed.send(text).refusal is Refusal.BUSY
    registry.poke(managed.session.dir)  # as `sm send` does
    ended = time.monotonic()
    hold.set()
    return (asked(managed, text).at_s - ended) * 1000


def _at_prompt(managed: Managed) -> float:
    wait_ready(managed)
    text, hold = _text(), hold_turn(managed)
    ended = time.monotonic()
    hold.set()
    wait_for(lambda: managed.screen().prompt == "idle", "the prompt", every_s=0.0)
    managed.paste(text)
    managed.keys("Enter")
    return (asked(managed, text).at_s - ended) * 1000
