"""Nothing lost, doubled or changed, whatever the agent is at and whoever is killed."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import random
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from sm.base.refusal import Status
from sm.base.text import clean
from sm.messages import delivery, draft, interrupt, queue
from sm.messages.queue import Message, Mode
from sm.sessions.agent_state import State
from sm.sessions.window import is_compacting
from tests.chance import dice
from tests.helpers import HANG_S, wait_for
from tests.real.api import Api, Kind, Reply, Request, Tool, Turn
from tests.real.client import hooks
from tests.real.managed import NOTE, Managed

_given = dict(os.environ)  # the fixture that seals a test's environment takes it away
LETTERS = [*"abc XYZ 0189 éüß ✓ 漢字 '\"`$\\{}[]()<>|&;*?!#@~^%/-_=+.,:\n\n", "👩‍👩‍👧"]
TINY = "Q"
"""A text of one byte; no other text has this letter."""
KEY = re.compile(rf"<(\d+)>|(?:^|context: )({TINY})$", re.MULTILINE)
"""What a text is known by: its number, or that it is a line, or the rest of one, all alone."""
DAMAGED = 4
"""On a busy machine the client damages one of fifty texts that are typed in pieces."""
LONG_LINE = re.compile("(.{790}).")
STARTS = ("", "/clear ", "!touch broken ", "-l ", "1. ", "# ", "exit\n", "  ", "@x ")
MOODS = ("starting", "idle", "busy in text", "busy in tools", "compacting")
"""Each is met by some of the messages at the moment that they are sent."""
SEEDS = (0, 2) if "SM_SOAK_MESSAGES" in _given else (0,)
EARLY, EARLY_SEED, HUGE_SEED = 20, SEEDS[0], SEEDS[-1]
"""So many are sent one upon another as the client starts; where there is a text of 200 KB."""
MESSAGES, KILLS = (
    int(_given.get("SM_SOAK_MESSAGES", "56")),
    int(_given.get("SM_SOAK_KILLS", "14")),
)
TIMEOUT_S = 900 + MESSAGES + KILLS
"""bin/soak asks for more of them."""

CRASHES = (
    *("deliver:queued", "deliver:claimed", "submit:before-typing", "submit:after-typing"),
    *("submit:accepted", "interrupt:noted", "interrupt:put-back", ""),
)


def some_text(chance: random.Random, number: int, *, huge: bool) -> str:
    """A text that no other contains: a byte, or from a line to a thousand, of 200 KB if `huge`."""
    if number == 40:
        return TINY
    size = chance.choice([1, 5, 40, 300, 900, 3000, 8000])
    if number % 100 == 50:
        size = 200_000 if huge or number % 200 == 150 else 20_000
    body = "".join(chance.choices(LETTERS, k=min(size, 2000))) * max(1, size // 2000)
    if size == 200_000:  # each paste takes the client time, and emoji more of it
        body = LONG_LINE.sub(r"\1\n", re.sub(r"[\n\u200d👩👧]", " ", body))
    if number % 50 == 25:
        body = "\n".join(f"line {line}" for line in range(1000))
    return clean(f"{chance.choice(STARTS)}<{number}>{body}<end of {number}>")


class Moods:
    """A model that answers at once, or with tools, or holds its answer for a while."""

    def __init__(self, seed: int) -> None:
        self.dice = dice(seed)
        self.timers: list[threading.Timer] = []
        self.works_by = "text"
        self.is_full = False

    def __call__(self, request: Request) -> Turn:
        turn = self.next()
        self.works_by = "tools" if turn.tools else "text"
        return turn

    def next(self) -> Reply:
        match 3 if self.is_full else self.dice.randrange(8):
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


def let_compactions_take(managed: Managed, seconds: float) -> None:
    """By a hook of the person's own: the scripted model sums up at once, a real one does not."""
    assert managed.session  # made, with its HOME
    path = managed.folder / "home" / ".claude" / "settings.json"
    slowly = hooks(PreCompact=f"python3 -c 'import time; time.sleep({seconds})'")
    path.write_text(json.dumps(json.loads(path.read_text()) | slowly))


def is_handed_over(managed: Managed) -> bool:
    delivery.drain(managed.session)
    return delivery.is_at_rest(managed.session)


def await_compaction(managed: Managed) -> None:
    """Wait until the client compacts, or has come to rest without."""
    wait_for(
        lambda: (
            is_compacting(managed.session.dir)
            or (is_handed_over(managed) and managed.state is State.IDLE)
        ),
        "a compaction, or the end of the turn",
    )


def mood(managed: Managed, model: Moods) -> str:
    """What the agent is at, as its hooks and its model have it."""
    if is_compacting(managed.session.dir):
        return "compacting"
    state = managed.state
    return f"busy in {model.works_by}" if state is State.BUSY else state.value


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


def check_heard_once(
    api: Api, texts: dict[str, str], sent: Mapping[str, str] = MappingProxyType({})
) -> dict[str, tuple[int, ...]]:
    """Every text reached the model once; returns where: request, string, place in it.

    A text is whole, or the model is told that it is not. No more than `DAMAGED` may be so.

    A compaction may take a text away again, but it must not come a second time. Only what differs
    from the request before is looked at, or a long run would be read a thousand times. `sent`: how
    each was sent, for whoever has to find out why one is missing.
    """
    by_key = {_keys(text)[0]: ident for ident, text in texts.items()}
    places: dict[str, tuple[int, ...]] = {}
    times: Counter[str] = Counter()
    before: Counter[str] = Counter()
    damaged: set[str] = set()
    for number, request in enumerate(kept(api)):
        now = Counter(request.texts)
        changes: Counter[str] = Counter()
        for sign, changed in ((1, now - before), (-1, before - now)):
            for string, count in changed.items():
                for ident in {by_key[key] for key in _keys(string) if key in by_key}:
                    changes[ident] += sign * count * _count(string, texts[ident])
                for ident in NOTE.findall(string):
                    changes[ident] += sign * count
                    damaged.add(ident)
        for ident, change in changes.items():
            times[ident] += change
            told = f"{texts[ident][:80]!r} of {ident} in request {number}"
            assert times[ident] in (0, 1), f"{times[ident]} times: {told}"
            if change > 0:
                assert ident not in places, f"again: {told}"
                places[ident] = (number, *_place(request, ident, texts[ident]))
        before = now
    missing = [
        f"{one} ({sent.get(one)}): {texts[one][:80]!r}; {_heard_instead(api, texts[one])}"
        for one in texts.keys() - places
    ]
    assert not missing, f"never heard: {missing}"
    assert len(damaged) <= DAMAGED, damaged
    return places


def _heard_instead(api: Api, text: str) -> str:
    """Where a text that was heard, but not whole, stops being as it was sent."""
    begin = text[:20]
    for request in api.seen:
        for string in request.texts:
            if begin in string:
                heard = string[string.index(begin) :]
                pairs = enumerate(zip(heard, text, strict=False))
                same = next((at for at, (one, other) in pairs if one != other), len(heard))
                return f"{same} of {len(text)} characters are right, then {heard[same:][:80]!r}"
    return "no part of it was heard"


def _keys(string: str) -> list[str]:
    return [found[1] or found[2] for found in KEY.finditer(string)]


def _count(string: str, text: str) -> int:
    return _keys(string).count(TINY) if text == TINY else string.count(text)


def _place(request: Request, ident: str, text: str) -> tuple[int, int]:
    for at, one in enumerate(request.texts):
        if text == TINY:
            found = [key.start(2) for key in KEY.finditer(one) if key[2]]
        else:
            found = [one.index(text)] if text in one else []
        found += [note.start() for note in NOTE.finditer(one) if note[1] == ident]
        if found:
            return at, found[0]
    raise AssertionError(f"{ident} is not in this request")


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("seed", SEEDS)
def test_hundreds_of_messages_of_every_kind_arrive_once_whole_and_in_order(
    unstarted: Managed, api: Api, seed: int
) -> None:
    managed = unstarted
    chance = dice(seed)
    api.model = model = Moods(seed)
    met: Counter[str] = Counter()
    let_compactions_take(managed, seconds=1)
    managed.start(wait=False)
    texts: dict[Mode, dict[str, str]] = {mode: {} for mode in Mode}
    sent: dict[str, str] = {}
    modes = [Mode.SEQUENTIAL] * 6 + [Mode.IMPORTANT] * 2 + [Mode.STEER] * 2 + [Mode.URGENT]
    for number in range(MESSAGES // len(SEEDS)):
        text, ident = some_text(chance, number, huge=seed == HUGE_SEED), queue.make_id()
        mode = chance.choice(modes)
        texts[mode][ident] = text
        if model.is_full:
            await_compaction(managed)
        met[met_now := mood(managed, model)] += 1
        model.is_full = number > 40 and not met["compacting"]
        outcome = managed.send(text, mode, ident)
        assert outcome.status is not Status.REFUSED, outcome
        sent[ident] = f"{number}, {mode}, while {met_now}: {outcome}"
        if len(text) >= 200_000:
            wait_for(lambda: is_handed_over(managed), "200 KB to be taken in")
        if chance.randrange(3) == 0 and not (seed == EARLY_SEED and number < EARLY):
            managed.drain_until_empty()
    managed.drain_until_empty()
    wait_for(lambda: managed.state == "idle", "the end of it")
    assert all(met[one] for one in MOODS), met
    every = {ident: text for found in texts.values() for ident, text in found.items()}
    assert TINY in every.values()
    assert seed != HUGE_SEED or max(map(len, every.values())) >= 200_000
    places = check_heard_once(api, every, sent)
    for mode in Mode:
        order = [places[ident] for ident in texts[mode]]
        assert order == sorted(order), f"{mode} messages out of order"
    assert not (managed.session.record.cwd / "broken").exists()
    assert all("pasted_content id" not in "".join(request.said) for request in api.main)


def run_and_die(managed: Managed, message: Message | None, point: str) -> int:
    """Deliver or drain in a process of its own that is killed at `point`; its exit status."""
    child = os.fork()
    if child == 0:
        try:
            os.environ["SM_CRASH_AT"] = point
            if message:
                delivery.deliver(managed.session, message)
            else:
                delivery.drain(managed.session)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def begin_turn(managed: Managed, text: str, hold: threading.Event, *, answers: bool) -> str:
    """Have a turn under way that ends with `hold`; the id of the message that began it.

    A turn without the beginning of an answer is taken back by an interruption.
    """
    managed.drain_until_empty()
    managed.wait_state(State.IDLE)
    before = len(managed.api.main)

    def answer(_request: Request) -> Reply:
        hold.wait(HANG_S)
        return Reply()

    if answers:
        managed.api.say(Reply("A longer answer.", hold=hold))
    else:
        managed.api.model = answer
    ident = queue.make_id()
    managed.send(text, ident=ident)
    managed.drain_until_empty()  # the screen may still show the turn before
    wait_for(lambda: len(managed.api.main) > before, "its request")
    return ident


def all_met(killed: Counter[str]) -> bool:
    return all(killed[point] for point in CRASHES if point)


@pytest.mark.timeout(TIMEOUT_S)
def test_a_deliverer_that_is_killed_at_any_step_loses_and_doubles_nothing(
    managed: Managed, api: Api
) -> None:
    chance = dice(7)
    texts: dict[str, str] = {}
    killed: Counter[str] = Counter()
    for number in itertools.count():
        body = chance.choice(["plain", "/clear\ttab", "é" * 2000])
        point = CRASHES[number % len(CRASHES)]
        interrupts = point.startswith("interrupt:")
        is_urgent = interrupts or number % 9 == 8
        mode = Mode.URGENT if is_urgent else Mode.SEQUENTIAL
        message = Message(id=queue.make_id(), text=f"<{number}> {body} <end {number}>", mode=mode)
        texts[message.id] = message.text
        hold = threading.Event()
        if interrupts:
            answers = point == "interrupt:noted"
            ident = begin_turn(managed, text := f"<{1000 + number}> first", hold, answers=answers)
            texts[ident] = text
        killed[point] += run_and_die(managed, message, point) == signal.SIGKILL
        hold.set()
        point = chance.choice(CRASHES)
        killed[point] += run_and_die(managed, None, point) == signal.SIGKILL
        if killed.total() >= 4 * KILLS or (killed.total() >= KILLS and all_met(killed)):
            break
        if number % 3 == 0:
            managed.drain_until_empty()
            managed.wait_state(State.IDLE)
    managed.drain_until_empty()
    wait_for(lambda: managed.state == "idle", "the end of it")
    check_heard_once(api, texts)
    assert all_met(killed), killed
    managed.wait_screen(lambda screen: not screen.draft, "a composer without what was given back")


def test_the_points_at_which_it_is_killed_are_all_there_are() -> None:
    source = "".join(inspect.getsource(module) for module in (delivery, interrupt, draft))
    assert set(re.findall(r'crash_point\("(.*?)"\)', source)) == set(CRASHES) - {""}
