"""Contexts of the real Claude Code that are replaced; the scripted API was sent the proof."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.context import act, clear, progress, rotation_files, run
from sm.context.health_log import RotationOutcome, read_recent
from sm.context.rotation import Cause, StepTimeouts
from sm.messages import delivery, queue
from sm.messages.queue import Message, Mode
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.store import journal
from sm.views.event_words import describe, name_event
from tests.chance import dice
from tests.helpers import wait_for
from tests.real.api import Api, Reply, Request, Tool, Turn
from tests.real.handoffs import (
    NUMBER,
    Writer,
    after_the_wish,
    before_the_prompt,
    contexts,
    heard,
    newest,
    resumes,
    wait_heard,
)
from tests.real.managed import Managed

IS_SOAK = "SM_SOAK_ROTATIONS" in os.environ
ROTATIONS = int(os.environ.get("SM_SOAK_ROTATIONS", "5"))
PATIENCE = 15 if IS_SOAK else 4
"""Seconds for each, on a machine that has much else to do; whoever was killed is missed a while."""
MODES = (
    *(*[Mode.SEQUENTIAL] * 5, Mode.IMPORTANT, *[Mode.SEQUENTIAL] * 5, Mode.STEER),
    *(*[Mode.SEQUENTIAL] * 3, Mode.URGENT),
)
AT_ONCE = 6
"""So many messages wait at a time while contexts are replaced one after another."""


@pytest.fixture
def writer(managed: Managed, api: Api) -> Iterator[Writer]:
    """A session under a monitor, whose model hands off when it is told to."""
    writer = api.model = Writer(managed.folder / "notes.md")
    managed.watch()
    yield writer
    for event in journal.read(managed.root.journal):  # shown where the test has failed
        print(f"{event.at:.3f} {name_event(event)} {describe(event)}")
    print(managed.session.dir.events.read_text()[-3000:])
    print(managed.session.dir.monitor_log.read_text()[-3000:])


@pytest.fixture
def hurried(unstarted: Managed, api: Api) -> Writer:
    """The same, with ten seconds for a handoff document."""
    writer = api.model = Writer(unstarted.folder / "notes.md")
    unstarted.folder.mkdir()
    unstarted.config = unstarted.folder / "machine.yaml"
    unstarted.config.write_text(json.dumps({"handoff_cycle": {"timeout": "10s"}}))
    unstarted.start()
    unstarted.watch()
    return writer


def told_to_go_on(writer: Writer) -> str:
    return f"Read {writer.notes} and continue from where you left off."


def is_over(managed: Managed) -> bool:
    """Whether no rotation is under way, and the agent's turn is over."""
    directory = managed.session.dir
    return managed.state is State.IDLE and not any(
        file.exists() for file in (directory.hold, directory.handoff, directory.rotation)
    )


def wait_rotated(managed: Managed, api: Api, count: int = 1, timeout_s: float = 30.0) -> None:
    """Wait until the context has been replaced that often, and its prompt was answered."""
    wait_for(lambda: len(contexts(api)) == count + 1, f"context {count + 1}", timeout_s)
    wait_for(lambda: is_over(managed), "the end of the rotation", timeout_s)


def clears(managed: Managed) -> int:
    """How often a context was cleared."""
    lines = managed.session.dir.events.read_text().splitlines()
    return sum(line.split()[1::2] == ["SessionStart", "clear"] for line in lines)


def health(managed: Managed) -> list[RotationOutcome]:
    return list(read_recent(managed.root, managed.session.name))[::-1]


# The agent's own wish


def test_an_agent_that_hands_off_goes_on_in_a_new_context(
    managed: Managed, api: Api, writer: Writer
) -> None:
    before = managed.agent
    managed.send("Hand off.")
    wait_rotated(managed, api)
    assert managed.agent == before
    assert clears(managed) == 1
    old, new = contexts(api).values()
    assert resumes(new) == [told_to_go_on(writer)]
    assert new[0].appearances("Hand off.") == 0
    assert not resumes(old)


def test_a_client_that_cannot_be_cleared_is_started_anew(unstarted: Managed, api: Api) -> None:
    managed = unstarted
    managed.folder.mkdir()
    managed.provider, managed.config = "stubborn", managed.folder / "machine.yaml"
    profile = {"like": "claude", "clear": "/there-is-no-such-command"}
    managed.config.write_text(json.dumps({"profiles": {managed.provider: profile}}))
    managed.variables["OF_ITS_OWN"] = "kept"
    writer = api.model = Writer(managed.folder / "notes.md")
    managed.start()
    managed.watch()
    before = managed.agent
    managed.send("Hand off.")
    wait_for(lambda: managed.session.dir.hold.exists(), "the wish")
    queue.put(managed.session.dir, Message(id=queue.make_id(), text="<1>"))
    wait_for(lambda: heard(api)[1], "what has waited")
    old, new = contexts(api).values()
    assert resumes(new) == [told_to_go_on(writer)]
    assert (resumes(old), old[-1].appearances("<1>")) == ([], 0)
    now = managed.agent
    assert (now.generation, now.pid != before.pid) == (before.generation + 1, True)
    assert b"OF_ITS_OWN=kept" in Path(f"/proc/{now.pid}/environ").read_bytes()


def test_a_rotation_waits_for_a_draft(managed: Managed, api: Api, writer: Writer) -> None:
    go = threading.Event()
    writer.turns.append(Reply("A long answer.", hold=go))
    managed.send("Begin.")
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    writer.turns.append(writer.hand_off())
    managed.send("Now, please.")  # when the turn ends
    draft = "half a line of a person"
    managed.type(draft)
    managed.wait_screen(lambda screen: draft in screen.draft, "the draft")
    go.set()
    told = "in the way: a person has half a line typed there"
    wait_for(lambda: told in progress.describe(managed.session.dir), "the clear to wait")
    assert managed.screen().draft == draft
    managed.keys(*["BSpace"] * len(draft))
    wait_rotated(managed, api)
    assert not any("half a line" in text for one in api.main for text in one.texts)


# Many, one after another


class Restless:
    """A model that hands off whenever it was told something new, until that was done so often."""

    def __init__(self, managed: Managed, writer: Writer, rotations: int) -> None:
        self.managed, self.writer, self.rotations = managed, writer, rotations

    def __call__(self, request: Request) -> Turn:
        is_new = any(NUMBER.search(text) for text in newest(request))
        if is_new and clears(self.managed) < self.rotations:
            return self.writer.hand_off()
        return self.writer(request)


def send_until(managed: Managed, stop: Path) -> int:
    """Send numbered messages of all modes from a process of its own, as they go; its pid."""
    if pid := os.fork():
        return pid
    try:
        for number in itertools.count():
            if stop.exists():
                stop.write_text(f"{number}\n")
                os._exit(0)
            text, mode = f"<{number}> is the number.", MODES[number % len(MODES)]
            message = Message(id=queue.make_id(), text=text, mode=mode)
            delivery.deliver(managed.session, message)
            wait_for(lambda: waiting(managed) < AT_ONCE or stop.exists(), "room")
    finally:
        os._exit(1)


def waiting(managed: Managed) -> int:
    return sum(1 for _ in (managed.session.dir.queue / "new").iterdir())


def kill_now_and_then(managed: Managed, stop: Path) -> Counter[str]:
    """Have sm's processes of the session killed, whatever they are at; counts how many were."""
    killed: Counter[str] = Counter()
    chance = dice(ROTATIONS)

    def reap() -> None:
        while not stop.exists():
            threading.Event().wait(chance.uniform(0.7, 2.0))
            for verb, pid in at_work(managed):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed[verb] += 1

    threading.Thread(target=reap, daemon=True).start()
    return killed


def at_work(managed: Managed) -> Iterator[tuple[str, int]]:
    """Whoever of sm is at work for this test's session."""
    mine = os.fsencode(managed.root.path)
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            if mine in (entry / "environ").read_bytes():
                yield from (
                    (verb, int(entry.name))
                    for verb in ("rotate", "react-server")
                    if words[-3:-1] == [verb, managed.session.name] or words[-2] == verb
                )


@pytest.mark.timeout(900 + (PATIENCE + 1) * ROTATIONS)
@pytest.mark.parametrize("mayhem", [False, True] if IS_SOAK else [False])
def test_rotations_in_a_row_lose_no_message_and_double_none(
    managed: Managed, api: Api, writer: Writer, tmp_path: Path, mayhem: bool
) -> None:
    api.model = Restless(managed, writer, ROTATIONS)
    stop = tmp_path / "stop"
    sender = send_until(managed, stop)
    killed = kill_now_and_then(managed, stop) if mayhem else Counter()
    try:
        wait_for(
            lambda: len(contexts(api)) > ROTATIONS, "the rotations", 600 + PATIENCE * ROTATIONS
        )
    finally:
        stop.touch()
        assert os.waitpid(sender, 0)[1] == 0
    managed.drain_until_empty()
    wait_for(lambda: is_over(managed), "the end of it")
    sent = int(stop.read_text())
    assert sent >= len(MODES)  # each of them was met
    wait_heard(api, sent)
    found = list(contexts(api).values())
    assert len(found) == clears(managed) + 1 == ROTATIONS + 1
    assert [resumes(requests) for requests in found[1:]] == [[told_to_go_on(writer)]] * ROTATIONS
    assert [text for requests in found[:-1] for text in after_the_wish(requests)] == []
    assert [number for requests in found[1:] for number in before_the_prompt(requests)] == []
    assert {record.status for record in health(managed)} == {"unconfirmed"}  # none was asked
    assert len(health(managed)) == ROTATIONS
    assert set(killed) == ({"rotate", "react-server"} if mayhem else set())


# The cycle


def fill(managed: Managed, writer: Writer, percent: float) -> None:
    """Let the next answers say that the context is so full; until it is a new one."""
    writer.percent = percent
    managed.send("How full are you?")


def new_context(managed: Managed, writer: Writer, percent: float) -> Callable[[], bool]:
    before = agent_state.read(managed.session.dir).context

    def is_new() -> bool:
        if agent_state.read(managed.session.dir).context == before:
            return False
        writer.percent = percent
        return True

    return is_new


def test_a_context_of_85_percent_is_replaced_and_the_agent_seen_to_go_on(
    managed: Managed, api: Api, writer: Writer
) -> None:
    is_new = new_context(managed, writer, 2)
    fill(managed, writer, 86)
    wait_for(is_new, "another context")
    wait_rotated(managed, api)
    (record,) = wait_for(lambda: health(managed), "the record")
    assert (record.status, record.details.context_at_trigger) == ("confirmed", 86)
    assert record.details.task == "what is to be done next"
    old, new = contexts(api).values()
    asked = [text for text in old[-1].texts if "Create handoff document now" in text]
    assert len(asked) == 1
    assert "Create handoff document now - context at 86%" in asked[0]
    assert resumes(new) == [f"Read handoff from {record.details.handoff_file} and resume work"]
    assert (
        Path(record.details.handoff_file).parent.parent
        == managed.session.record.cwd / ".sm/handoffs"
    )


def test_a_new_context_that_names_no_task_is_asked_then_replaced_once_more(
    managed: Managed, api: Api, writer: Writer
) -> None:
    """One that names it when it is asked, or never: tests/e2e/test_rotation.py."""
    writer.mum = 2
    managed.send("Begin.")
    wait_for(lambda: is_over(managed), "the first turn")
    assert run.begin_cycle(managed.session, Cause.COMMAND, None)
    queue.put(managed.session.dir, Message(id=queue.make_id(), text="<1> has waited."))
    (record,) = wait_for(lambda: health(managed), "the record", 90)
    managed.drain_until_empty()
    assert (record.status, clears(managed)) == ("confirmed", 2)
    new = list(contexts(api).values())[1:]
    assert [len(resumes(requests)) for requests in new] == [1, 1]
    asked = [requests[-1].appearances("Confirm you have resumed") for requests in new]
    assert asked == [1, 0]
    wait_for(lambda: heard(api) == Counter([1]), "what has waited")
    assert list(contexts(api).values())[-1][-1].appearances("<1>") == 1


def test_a_document_is_asked_for_again_at_the_turns_end_and_its_missing_sections_once(
    unstarted: Managed, api: Api, hurried: Writer
) -> None:
    """Of an agent that writes none at all: tests/e2e/test_rotation.py."""
    hurried.never = 1
    hurried.lacking.append({"Next Steps", "Notes"})
    is_new = new_context(unstarted, hurried, 2)
    fill(unstarted, hurried, 90)
    wait_for(is_new, "another context")
    wait_rotated(unstarted, api)
    (record,) = wait_for(lambda: health(unstarted), "the record")
    old = next(iter(contexts(api).values()))
    assert old[-1].appearances("Create handoff document now") == 2
    assert sum("what it lacks. Headings: Next Steps, Notes." in text for text in old[-1].texts) == 1
    assert "## Next Steps" in Path(record.details.handoff_file).read_text()


def test_a_document_that_is_written_twice_is_taken_as_it_is_at_the_end(
    managed: Managed, api: Api, writer: Writer
) -> None:
    writer.percent = 86
    again = "echo It was written twice. | tee -a .sm/handoffs/*/handoff-*.md"
    writer.turns += [writer.reply("I am full."), writer.reply("", again)]
    is_new = new_context(managed, writer, 2)
    managed.send("How full are you?")
    wait_for(is_new, "another context")
    wait_rotated(managed, api)
    (record,) = wait_for(lambda: health(managed), "the record")
    assert record.status == "confirmed"
    assert Path(record.details.handoff_file).read_text().endswith("It was written twice.\n")
    assert clears(managed) == 1
    (_, new) = contexts(api).values()
    assert len(resumes(new)) == 1


def test_a_long_turn_is_ended_once_its_document_is_there(
    managed: Managed, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a real agent is given is half a minute for the one, and a whole one for the other.
    quick = functools.partial(StepTimeouts, settled_s=0.3, grace_s=0.3)
    monkeypatch.setattr(run, "StepTimeouts", quick)
    writer = api.model = Writer(managed.folder / "notes.md")
    over = threading.Event()
    writer.turns.append(Reply("An answer without an end.", hold=over))
    asked = managed.folder / "asked"
    api.say(
        Reply("", (Tool.bash(f"timeout 60 sh -c 'until [ -e {asked} ]; do sleep 0.05; done'"),))
    )
    managed.send("Begin.")
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    managed.send("<1>")
    assert run.begin_cycle(managed.session, Cause.COMMAND, 90.0)
    waits = functools.partial(queue.has_mode, managed.session.dir, Mode.STEER)
    wait_for(lambda: carry_on(managed) or waits(), "the request for the document")
    asked.touch()

    def is_interrupted() -> bool:
        told = [describe(event) for event in journal.read(managed.root.journal)]
        return "turn interrupted" in told

    wait_for(lambda: carry_on(managed) or is_interrupted(), "the end of its turn")
    over.set()  # interrupted before it began with that answer, it is given it in the new context
    wait_for(lambda: carry_on(managed), "the end of the rotation")
    old, new = contexts(api).values()
    assert is_interrupted()
    assert len(resumes(new)) == 1
    assert (heard(api), old[-1].appearances("<1>")) == (Counter([1]), 0)
    assert clears(managed) == 1


# Whoever carries it out is killed, and the document lost

POINTS = (
    *("rotate:taken-up", "rotate:decided", "rotate:clear", "rotate:kept", "clear:before-typing"),
    *("clear:typed", "rotate:cleared", "rotate:tell", "rotate:queued", "deliver:claimed"),
    *("submit:before-typing", "submit:after-typing", "submit:accepted", "rotate:finish"),
    *("rotate:told", "rotate:saved"),
)
"""Where a rotation that the agent has asked for may die."""
MOMENTS = ("rotate:taken-up", "rotate:kept", "clear:typed", "rotate:cleared", "rotate:queued")
"""After each of these something else is known of the document."""


Loss = Callable[[Path], None]


def delete(path: Path) -> None:
    path.unlink()


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def let_be(_path: Path) -> None:
    pass


@pytest.fixture
def alone(unstarted: Managed, api: Api) -> Iterator[Writer]:
    """A session whose rotations nobody carries on: what its Stop hook starts dies at once."""
    writer = api.model = Writer(unstarted.folder / "notes.md")
    unstarted.variables["SM_CRASH_AT"] = POINTS[0]
    unstarted.start()
    yield writer
    for event in journal.read(unstarted.root.journal):  # shown where the test has failed
        print(f"{event.at:.3f} {name_event(event)} {describe(event)}")
    print(unstarted.session.dir.events.read_text()[-3000:])


def advance(managed: Managed) -> float:
    return run.advance(managed.session)


def dies_at(managed: Managed, point: str) -> bool:
    """Carry the rotation on in a process of its own; whether that was killed at `point`."""
    child = os.fork()
    if child == 0:
        os.environ["SM_CRASH_AT"] = point
        try:
            advance(managed)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def has_wished(managed: Managed) -> bool:
    """What monitors do until then: type what the screen had no place for yet."""
    if not managed.session.dir.hold.exists():
        delivery.drain(managed.session)
    return managed.state is State.IDLE and managed.session.dir.rotation.exists()


def carry_on(managed: Managed) -> bool:
    """What monitors do: look again and again; whether the rotation is over, and all is heard."""
    advance(managed)
    delivery.drain(managed.session)
    return is_over(managed) and delivery.is_at_rest(managed.session)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("lose", "points"), [(let_be, POINTS), (delete, MOMENTS), (link, MOMENTS[::3])]
)
def test_an_executor_that_dies_at_any_step_leaves_nothing_stuck(
    unstarted: Managed,
    api: Api,
    alone: Writer,
    lose: Callable[[Path], None],
    points: tuple[str, ...],
) -> None:
    managed, directory = unstarted, unstarted.session.dir
    for number, point in enumerate(points):
        cleared, prompts = clears(managed), told_to_go_on_in_all(api)
        alone.notes.unlink(missing_ok=True)
        # In the turn before it would come together with what has waited, and the model sees one.
        managed.wait_state(State.IDLE)
        managed.send("Hand off.")
        wait_for(functools.partial(has_wished, managed), "its wish")
        queue.put(directory, Message(id=queue.make_id(), text=f"<{number}> has waited."))
        # The client may not have drawn the end of its turn yet: then the executor comes again.
        wait_for(functools.partial(dies_at, managed, point), f"a death at '{point}'", every_s=0.1)
        lose(alone.notes)
        wait_for(functools.partial(carry_on, managed), f"the end after '{point}'")
        now = (clears(managed) - cleared, told_to_go_on_in_all(api) - prompts)
        assert now == (1, 1) or (now == (0, 0) and lose is not let_be), point
    wait_heard(api, len(points))
    assert len(contexts(api)) == clears(managed) + 1


def told_to_go_on_in_all(api: Api) -> int:
    return sum(len(resumes(requests)) for requests in contexts(api).values())


def test_these_are_all_the_points_at_which_it_may_die() -> None:
    source = "".join(inspect.getsource(one) for one in (run, act, rotation_files, clear))
    named = set(re.findall(r'crash_point\("(.*?)"\)', source))
    others = {"rotate:relaunching"}
    assert named - others <= set(POINTS)


def test_the_api_that_is_down_leaves_the_session_ready_for_what_comes(
    managed: Managed, api: Api, writer: Writer
) -> None:
    managed.send("Hand off.")
    wait_for(lambda: clears(managed) == 1, "the clear", 30, every_s=0.001)
    api.down()
    managed.wait_state(State.LIMITED)
    wait_for(lambda: not managed.session.dir.hold.exists(), "the end of the rotation")
    api.up()
    managed.send("<1>")
    managed.drain_until_empty()
    wait_for(lambda: heard(api) == Counter([1]), "what has waited")
    managed.wait_state(State.IDLE)
    assert resumes(list(contexts(api).values())[-1]) == [told_to_go_on(writer)]
