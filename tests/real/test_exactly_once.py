"""Nothing lost, doubled or changed, whatever the agent is at and whoever is killed."""

from __future__ import annotations

import inspect
import itertools
import os
import random
import re
import signal
import sys
import threading
from collections import Counter

import pytest

from sm.session import delivery, interruption, queue, submission
from sm.session.agentstate import State
from sm.session.queue import Message, Mode
from sm.text import clean
from tests.helpers import wait_for
from tests.real.api import Api, Kind, Reply, Request, Tool, Turn
from tests.real.managed import Managed

_given = dict(os.environ)  # the fixture that seals a test's environment takes it away
LETTERS = [*"abc XYZ 0189 éüß ✓ 漢字 '\"`$\\{}[]()<>|&;*?!#@~^%/-_=+.,:\n\n", "👩‍👩‍👧"]
NUMBER = re.compile(r"<(\d+)>")
STARTS = ("", "/clear ", "!touch broken ", "-l ", "1. ", "# ", "exit\n", "  ", "@x ")
MESSAGES, KILLS = (
    int(_given.get("SM_SOAK_MESSAGES", "500")),
    int(_given.get("SM_SOAK_KILLS", "200")),
)
TIMEOUT_S = 300 + MESSAGES + KILLS
"""bin/soak asks for more of them."""

CRASHES = (
    *("deliver:queued", "deliver:claimed", "submit:before-typing", "submit:after-typing"),
    *("submit:accepted", "interrupt:noted", ""),
)


def some_text(dice: random.Random, number: int) -> str:
    """A text that no other contains: from a line to a thousand, up to 200 KB now and then."""
    size = dice.choice([1, 5, 40, 300, 900, 3000, 8000])
    if number % 100 == 50:
        size = 20_000 if number % 200 == 50 else 200_000
    body = "".join(dice.choices(LETTERS, k=min(size, 2000))) * max(1, size // 2000)
    if number % 50 == 25:
        body = "\n".join(f"line {line}" for line in range(1000))
    return clean(f"{dice.choice(STARTS)}<{number}>{body}<end of {number}>")


class Moods:
    """A model that answers at once, or with tools, or holds its answer for a while."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.timers: list[threading.Timer] = []

    def __call__(self, request: Request) -> Turn:
        match self.dice.randrange(8):
            case 0:
                return Reply("", (Tool.bash("true"),))
            case 1:
                return Reply("", (Tool.bash("python3 -c 'import time; time.sleep(0.3)'"),))
            case 2:
                return Reply("A longer answer, slowly.", hold=self.soon())
            case 3:
                return Reply("Nearly full.", tokens=990_000)
        return Reply()

    def soon(self) -> threading.Event:
        event = threading.Event()
        timer = threading.Timer(0.4, event.set)
        timer.daemon = True
        timer.start()
        self.timers.append(timer)
        return event


def kept(api: Api) -> list[Request]:
    """The main requests, but for those that were interrupted and taken back into the composer."""
    seen = [r for r in api.seen if r.kind in (Kind.MAIN, Kind.COMPACTION)]
    found = []
    for request, following in zip(seen, [*seen[1:], None], strict=True):
        if request.kind is Kind.MAIN and (
            following is None
            or following.kind is Kind.COMPACTION
            or request.said[-1:] == following.said[len(request.said) - 1 : len(request.said)]
        ):
            found.append(request)
    return found


def check_heard_once(api: Api, texts: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Every text reached the model once, whole; returns where: request, string, place in it.

    A compaction may take a text away again, but it must not come a second time. Only what differs
    from the request before is looked at, or a long run would be read a thousand times.
    """
    by_number = {NUMBER.search(text)[1]: ident for ident, text in texts.items()}  # type: ignore[index]
    places: dict[str, tuple[int, ...]] = {}
    times: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for number, request in enumerate(kept(api)):
        now = Counter(request.texts)
        changes: Counter[str] = Counter()
        for sign, changed in ((1, now - before), (-1, before - now)):
            for string, count in changed.items():
                for ident in {by_number[n] for n in NUMBER.findall(string) if n in by_number}:
                    changes[ident] += sign * count * string.count(texts[ident])
        for ident, change in changes.items():
            times[ident] += change
            told = f"{texts[ident][:80]!r} of {ident} in request {number}"
            assert times[ident] in (0, 1), f"{times[ident]} times: {told}"
            if change > 0:
                assert ident not in places, f"again: {told}"
                places[ident] = (number, *_place(request, texts[ident]))
        before = now
    missing = texts.keys() - places
    assert not missing, f"never heard: {[(ident, texts[ident][:80]) for ident in missing]}"
    return places


def _place(request: Request, text: str) -> tuple[int, int]:
    return next((at, one.index(text)) for at, one in enumerate(request.texts) if text in one)


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_messages_of_every_kind_arrive_once_whole_and_in_order(
    unstarted: Managed, api: Api, seed: int
) -> None:
    managed = unstarted
    dice = random.Random(seed)
    api.model = Moods(seed)
    managed.start(wait=False)
    texts: dict[Mode, dict[str, str]] = {mode: {} for mode in Mode}
    modes = [Mode.SEQUENTIAL] * 6 + [Mode.IMPORTANT] * 2 + [Mode.STEER] * 2 + [Mode.URGENT]
    for number in range(MESSAGES // 4):
        mode, text, ident = dice.choice(modes), some_text(dice, number), queue.new_id()
        texts[mode][ident] = text
        outcome = managed.send(text, mode, ident)
        assert outcome.status is not delivery.Status.REFUSED, outcome
        if dice.randrange(3) == 0:
            managed.drain_until_empty()
    managed.drain_until_empty()
    wait_for(lambda: managed.state == "idle", "the end of it", 60.0)
    places = check_heard_once(api, {k: v for found in texts.values() for k, v in found.items()})
    for mode in (Mode.SEQUENTIAL, Mode.IMPORTANT, Mode.URGENT):
        order = [places[ident] for ident in texts[mode]]
        assert order == sorted(order), f"{mode} messages out of order"
    assert not (managed.session.cwd / "broken").exists()
    assert all("pasted_content id" not in "".join(request.said) for request in api.main)


def run_and_die(managed: Managed, message: Message | None, point: str) -> int:
    """Deliver or drain in a process of its own that is killed at `point`; its exit status."""
    child = os.fork()
    if child == 0:
        try:
            os.environ["SM_CRASH_AT"] = point
            if message:
                delivery.deliver(managed.target, message)
            else:
                delivery.drain(managed.target)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.timeout(TIMEOUT_S)
def test_a_deliverer_that_is_killed_at_any_step_loses_and_doubles_nothing(
    managed: Managed, api: Api
) -> None:
    dice = random.Random(7)
    texts: dict[str, str] = {}
    killed: Counter[str] = Counter()
    for number in itertools.count():
        body = dice.choice(["plain", "/clear\ttab", "é" * 2000])
        mode = Mode.URGENT if number % 9 == 8 else Mode.SEQUENTIAL
        message = Message(id=queue.new_id(), text=f"<{number}> {body} <end {number}>", mode=mode)
        texts[message.id] = message.text
        point = CRASHES[number % len(CRASHES)]
        killed[point] += run_and_die(managed, message, point) == signal.SIGKILL
        point = dice.choice(CRASHES)
        killed[point] += run_and_die(managed, None, point) == signal.SIGKILL
        if killed.total() >= KILLS:
            break
        if number % 3 == 0:
            managed.drain_until_empty()
            managed.wait_state(State.IDLE)
    managed.drain_until_empty()
    wait_for(lambda: managed.state == "idle", "the end of it", 60.0)
    check_heard_once(api, texts)
    assert all(killed[point] for point in CRASHES if point), killed


def test_the_points_at_which_it_is_killed_are_all_there_are() -> None:
    source = "".join(inspect.getsource(module) for module in (delivery, interruption, submission))
    assert set(re.findall(r'crash_point\("(.*?)"\)', source)) == set(CRASHES) - {""}
