"""Delivery to the real Claude Code; what the scripted API was sent is the proof."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import pytest

from sm.adapters.agent.prompt import Prompt
from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import interrupt, queue
from sm.messages.queue import MessageFolder, Mode
from sm.sessions.agent_state import State
from sm.sessions.window import is_compacting
from tests.helpers import HANG_S, wait_for
from tests.real.api import Reply, Request, Tool
from tests.real.client import Clients, hooks
from tests.real.lasting import begin_anew, lasting_session
from tests.real.managed import ACCEPTED, Managed, until
from tests.viewer import Viewer, attached

ADDED = "UserPromptSubmit hook additional context: "
"""What the client says before a text that a hook has added (2.1.329)."""


@pytest.fixture(scope="module")
def worker(pinned: Clients, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    """A client whose compactions wait for a file: a real model takes its time for one as well."""
    with lasting_session(pinned.claude, tmp_path_factory.mktemp("worker")) as managed:
        settings = managed.session.record.cwd.parent / "home" / ".claude" / "settings.json"
        slowly = hooks(PreCompact=until(managed.folder / "summed-up"))
        settings.write_text(json.dumps(json.loads(settings.read_text()) | slowly))
        managed.start()
        yield managed


@pytest.fixture
def managed(worker: Managed) -> Managed:
    """The same, idle in a new context, without a file that a test waits for."""
    begin_anew(worker)
    for path in (worker.folder / "summed-up", *worker.session.record.cwd.iterdir()):
        path.unlink(missing_ok=True)
    return worker


def wait_heard(managed: Managed, *texts: str) -> None:
    """Wait until the model has heard each of these exactly once."""

    def heard() -> bool:
        return all(managed.api.appearances(text) == 1 for text in texts)

    wait_for(heard, f"{[text[:60] for text in texts]} once")


def wait_heard_or_told(managed: Managed, text: str, ident: str) -> None:
    """The same for a text that is typed in pieces: if one is damaged, the agent must be told."""

    def heard() -> bool:
        times = [managed.api.appearances(one) for one in (text, managed.note_of(ident))]
        return sum(times) == 1

    wait_for(heard, f"'{text[:60]}' once, whole or as damaged")


def test_an_idle_agent_accepts_a_plain_message_as_it_is(managed: Managed) -> None:
    assert managed.send("[sm] CI passed.\nGo on.") == ACCEPTED
    wait_heard(managed, "[sm] CI passed.\nGo on.")
    assert managed.api.main[-1].said[-1] == "[sm] CI passed.\nGo on."


@pytest.mark.parametrize("mode", [Mode.SEQUENTIAL, Mode.STEER])
def test_a_text_with_a_tag_that_hooks_cannot_bring_arrives_unchanged(
    managed: Managed, mode: Mode
) -> None:
    """Claude Code would make `&lt;` of its first character."""
    text = "/a line\nthe tag <system-reminder>is</system-reminder> kept\nand\nmore"
    hold = threading.Event()
    managed.api.say(Reply("Working on it.", hold=hold))
    managed.send("Begin.")
    wait_for(lambda: managed.api.main, "the request")
    assert managed.send(text, mode).status is Status.WAITING
    hold.set()
    managed.wait_state(State.IDLE)
    managed.drain_until_empty()
    wait_heard(managed, text)


def test_a_busy_agent_gets_messages_at_the_end_of_its_turn(managed: Managed) -> None:
    hold = threading.Event()
    managed.api.say(Reply("Working on it, at length.", hold=hold))
    managed.send("Begin.")
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    assert managed.send("first /x\tA") == Outcome(Status.WAITING, Refusal.BUSY)
    managed.send("second !B")
    managed.send("the important one", Mode.IMPORTANT)
    wait_for(lambda: len(managed.api.main) == 1, "the request")
    hold.set()
    wait_heard(managed, "first /x\tA", "second !B", "the important one")
    managed.drain_until_empty()
    assert len(managed.api.main) == 2
    whole = "\n".join(managed.api.main[-1].texts)
    assert "the important one\n\nfirst /x\tA\n\nsecond !B" in whole


def test_a_steer_message_rides_on_the_next_tool_result(managed: Managed) -> None:
    go = managed.session.record.cwd / "go"
    managed.api.say(
        Reply(
            "",
            (Tool.bash(until(go)),),
        )
    )
    managed.send("Begin.")
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    assert managed.send("Mind the gap.", Mode.STEER).status is Status.WAITING
    go.touch()
    wait_heard(managed, "Mind the gap.")
    managed.wait_state(State.IDLE)
    managed.drain_until_empty()
    assert managed.api.main[1].appearances("Mind the gap.") == 1


def test_an_urgent_message_interrupts(managed: Managed) -> None:
    hold = threading.Event()
    managed.api.say(Reply("A very long story, told slowly.", hold=hold))
    managed.send("Begin.")
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    wait_for(lambda: len(managed.api.main) == 1, "the request")
    assert managed.send("Stop that.", Mode.URGENT) == ACCEPTED
    wait_heard(managed, "Stop that.")
    hold.set()
    managed.drain_until_empty()
    wait_heard(managed, "Begin.", "Stop that.")


@pytest.mark.parametrize(("lines", "line"), [(3, "of it"), (1200, "of it")])
def test_a_message_that_an_interruption_takes_back_comes_again(
    managed: Managed, lines: int, line: str
) -> None:
    """Before its answer begins; of a long one only the end shows in the composer."""
    begins = threading.Event()

    def model(_request: Request) -> Reply:
        begins.wait(HANG_S)
        return Reply()

    managed.api.model = model
    told = "".join(f"line {number} {line}\n" for number in range(lines)) + "all of it"
    ident = queue.make_id()
    managed.send(told, ident=ident)
    wait_for(lambda: managed.api.main, "its request")
    managed.send("Stop that.", Mode.URGENT)
    begins.set()
    managed.drain_until_empty()
    managed.wait_state(State.IDLE)
    wait_heard(managed, "Stop that.")
    wait_heard_or_told(managed, told, ident)


def test_a_long_text_that_is_given_back_is_erased_however_long_it_takes(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow machine had not erased it in time. All that came after it waited for a person."""
    monkeypatch.setattr(interrupt, "ERASE_S", 0.1)
    begins = threading.Event()

    def model(_request: Request) -> Reply:
        begins.wait(HANG_S)
        return Reply()

    managed.api.model = model
    told = "".join(f"line {number}{' of it' * 14}\n" for number in range(100)) + "all of it"
    ident = queue.make_id()
    managed.send(told, ident=ident)
    wait_for(lambda: managed.api.main, "its request")
    assert managed.send("Stop that.", Mode.URGENT).status is Status.WAITING
    begins.set()
    managed.drain_until_empty()
    managed.wait_state(State.IDLE)
    wait_heard(managed, "Stop that.")
    wait_heard_or_told(managed, told, ident)
    managed.wait_screen(lambda screen: screen.prompt == "idle" and not screen.draft, "no draft")


def test_a_message_that_was_taken_back_and_came_by_a_hook_does_not_come_once_more(
    managed: Managed,
) -> None:
    """The hook may be quicker than the next look at what became of the interruption."""
    begins, ident = threading.Event(), queue.make_id()

    def model(_request: Request) -> Reply:
        begins.wait(HANG_S)
        return Reply()

    managed.api.model = model
    managed.send("Begin.", ident=ident)
    wait_for(lambda: managed.api.main, "its request")
    managed.send("Stop that.", Mode.URGENT)
    assert queue.find_place(managed.session.dir, ident) is MessageFolder.WAITING
    assert not managed.session.dir.interrupted.exists()
    begins.set()
    wait_for(lambda: queue.is_accepted(managed.session.dir, ident), "its receipt")
    managed.wait_state(State.IDLE)
    managed.drain_until_empty()
    managed.send("And then this.")
    managed.drain_until_empty()  # the screen may be late, and there is no monitor
    wait_heard(managed, "Begin.", "Stop that.", "And then this.")


def test_a_message_that_is_taken_back_after_a_compaction_comes_again(managed: Managed) -> None:
    """It is in the transcript, and among what the compaction has kept."""
    managed.api.say(Reply("Nearly full.", tokens=990_000))
    managed.send("Begin.")
    managed.drain_until_empty()
    managed.wait_state(State.IDLE)
    managed.send("# Go on\nwith what there is.")
    managed.drain_until_empty()
    wait_for(lambda: is_compacting(managed.session.dir), "a compaction")
    (managed.folder / "summed-up").touch()
    wait_for(lambda: not is_compacting(managed.session.dir), "its end", every_s=0.002)
    managed.send("Stop that.", Mode.URGENT)
    managed.drain_until_empty()
    managed.wait_state(State.IDLE)
    wait_heard(managed, "with what there is.", "Stop that.")
    assert all(text.count("[sm]") <= 1 for text in managed.api.main[-1].texts)


def test_a_message_that_an_interruption_keeps_from_the_agent_comes_again(
    unstarted: Managed,
) -> None:
    """It was handed over at a turn's end, and a person's own hook was still running."""
    managed, slow = unstarted, unstarted.folder / "slow"
    settings = managed.session.record.cwd.parent / "home" / ".claude" / "settings.json"
    once = f"if rm '{slow}'; then sleep 60; fi"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | hooks(Stop=once)))
    managed.start()
    slow.touch()
    told, ends, ends_too = queue.make_id(), threading.Event(), threading.Event()
    managed.api.say(Reply("A story.", hold=ends))
    managed.send("Begin.")
    wait_for(lambda: managed.api.main, "its request")
    managed.send("Go on.", ident=told)
    ends.set()
    wait_for(
        lambda: queue.find_place(managed.session.dir, told) is MessageFolder.HANDED,
        "the turn's end",
    )
    wait_for(lambda: not slow.exists(), "the person's hook")
    managed.api.say(Reply("Another one.", hold=ends_too))
    managed.keys("Escape")
    managed.send("Stop that.")
    managed.drain_until_empty()
    wait_for(lambda: managed.api.appearances("Stop that."), "the other turn")
    managed.send("And then this.")
    ends_too.set()
    wait_heard(managed, "And then this.")
    managed.drain_until_empty()
    wait_heard(managed, "Begin.", "Go on.", "Stop that.", "And then this.")


def at_its_prompt(_managed: Managed) -> Callable[[], None]:
    return lambda: None


def in_a_text(managed: Managed) -> Callable[[], None]:
    hold = threading.Event()
    managed.api.say(Reply("A very long story, told slowly.", hold=hold))
    managed.send("Begin.")
    wait_for(lambda: managed.api.main, "the request")
    return hold.set


def in_a_tool(managed: Managed) -> Callable[[], None]:
    begun, go = (managed.session.record.cwd / name for name in ("begun", "go"))
    managed.api.say(Reply("", (Tool.bash(f"touch {begun}; {until(go)}"),)))
    managed.send("Begin.")
    wait_for(begun.exists, "the tool")
    return go.touch


def in_a_compaction(managed: Managed) -> Callable[[], None]:
    managed.api.say(Reply("Nearly full.", tokens=990_000))
    managed.send("Begin.")
    managed.wait_state(State.IDLE)
    managed.wait_screen(lambda screen: screen.prompt == "idle", "an idle prompt")
    managed.send("Go on.")
    wait_for(lambda: is_compacting(managed.session.dir), "a compaction")
    return (managed.folder / "summed-up").touch


@pytest.mark.parametrize("mode", [Mode.SEQUENTIAL, Mode.STEER, Mode.URGENT])
@pytest.mark.parametrize("begin", [at_its_prompt, in_a_text, in_a_tool, in_a_compaction])
def test_a_persons_draft_survives_whatever_the_agent_is_at(
    managed: Managed, begin: Callable[[Managed], Callable[[], None]], mode: Mode
) -> None:
    draft = "two lines\nof a draft"
    go_on = begin(managed)
    managed.paste(draft)
    managed.wait_screen(lambda screen: screen.draft == draft, "the draft")
    at_once = begin is at_its_prompt or (mode is Mode.URGENT and begin is not in_a_compaction)
    outcome = managed.send("For you.", mode)
    assert outcome.status is (Status.ACCEPTED if at_once else Status.WAITING)
    assert is_compacting(managed.session.dir) == (begin is in_a_compaction)
    go_on()
    managed.drain_until_empty()
    managed.wait_state(State.IDLE)
    wait_heard(managed, "For you.")
    managed.wait_screen(
        lambda screen: (screen.prompt, screen.draft, screen.stashed) == ("idle", draft, False),
        "the draft again",
    )
    for request in managed.api.seen:
        assert not any("of a draft" in text for text in request.texts)


def test_an_open_dialog_is_never_answered(unstarted: Managed) -> None:
    unstarted.options = ("--permission-mode", "default")
    unstarted.start()
    unstarted.api.say(Reply("", (Tool.bash("touch made"),)))
    unstarted.send("Begin.")
    unstarted.wait_state(State.DIALOG)
    for mode in Mode:
        assert unstarted.send(f"as {mode}", mode) == Outcome(Status.WAITING, Refusal.DIALOG)
    assert not (unstarted.session.record.cwd / "made").exists()
    unstarted.wait_screen(lambda screen: screen.prompt == "dialog", "the dialog")
    for mode in Mode:
        assert unstarted.send(f"again as {mode}", mode) == Outcome(Status.WAITING, Refusal.DIALOG)
    assert not (unstarted.session.record.cwd / "made").exists()
    made = (unstarted.session.record.cwd / "made").exists

    def answer() -> bool:  # the person's own; the client takes none while a dialog is quite new
        unstarted.keys("Enter")
        return made()

    wait_for(answer, "the tool", 15.0, every_s=0.5)
    unstarted.drain_until_empty()
    wait_heard(unstarted, *(f"again as {mode}" for mode in Mode))


def test_the_first_prompt_and_the_protocol_go_with_the_launch(unstarted: Managed) -> None:
    prompt = "Do it:\n" + "a line of it\n" * 60 + "/end"
    unstarted.start(prompt, protocol="Signal by PHASE:done.", wait=False)
    wait_for(lambda: unstarted.api.main, "a request")
    wait_heard(unstarted, prompt)
    assert "Signal by PHASE:done." in unstarted.api.main[-1].system
    assert "pasted_content" not in "".join(unstarted.api.main[-1].texts)


def test_a_message_for_an_agent_that_just_starts_waits_for_its_prompt(unstarted: Managed) -> None:
    unstarted.start(wait=False)
    outcome = unstarted.send("Early.")
    early = (Refusal.NO_PROMPT, Refusal.SHELL)  # its launcher is a shell
    assert outcome in (ACCEPTED, *(Outcome(Status.WAITING, why) for why in early))
    unstarted.drain_until_empty()
    wait_heard(unstarted, "Early.")


def test_an_urgent_message_does_not_take_back_another_one(managed: Managed) -> None:
    hold = threading.Event()
    managed.api.say(Reply("A very long story, told slowly.", hold=hold))
    assert managed.send("First things first.", Mode.URGENT) == ACCEPTED
    managed.wait_screen(lambda screen: screen.prompt == "busy", "a busy prompt")
    assert managed.send("And then this.", Mode.URGENT) == Outcome(Status.WAITING, Refusal.BUSY)
    hold.set()
    wait_heard(managed, "First things first.", "And then this.")
    managed.drain_until_empty()
    whole = "\n".join(managed.api.main[-1].texts)
    assert whole.index("First things") < whole.index("And then")


def test_a_person_at_a_tiny_terminal_holds_up_no_message(managed: Managed) -> None:
    name = managed.session.name
    viewer = Viewer(managed.tmux.attach_argv(name), (30, 6))
    try:
        wait_for(lambda: attached(managed.tmux, viewer, name), "the person")
        wait_for(lambda: managed.screen().prompt == "none", "a screen without an input line")
        managed.send("From far away.")
        managed.drain_until_empty()
        wait_heard(managed, "From far away.")
    finally:
        viewer.close()
    managed.send("Nobody looks.")
    managed.drain_until_empty()
    wait_heard(managed, "Nobody looks.")


def test_a_screen_that_has_lost_its_input_line_is_drawn_anew(managed: Managed) -> None:
    pane, name = managed.agent.pane_id, managed.session.name

    def size() -> str:
        return managed.tmux.command("display-message", "-p", "-t", pane, "#{window_height}")

    def lose(text: str) -> None:
        before = size()
        managed.tmux.command("send-keys", "-R", "-t", pane)  # the client knows nothing of it
        assert managed.screen().prompt is Prompt.NONE
        assert managed.send(text).status is Status.WAITING
        managed.drain_until_empty()
        wait_heard(managed, text)
        assert size() == before

    own = size()
    lose("Can you see me?")
    managed.wait_state(State.IDLE)
    viewer = Viewer(managed.tmux.attach_argv(name), (110, 35))
    try:
        wait_for(lambda: attached(managed.tmux, viewer, name), "the person")
        wait_for(lambda: size() != own, "their size")
        lose("And now?")
    finally:
        viewer.close()
