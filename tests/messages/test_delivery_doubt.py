"""Messages of which it is not known whether the agent has them: told never twice, never dropped."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import GENERIC
from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import Screen
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.tmux import Tmux
from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import delivery, draft, observe, queue
from sm.messages import interrupt as interruption
from sm.messages.decide import Typed
from sm.messages.draft import TypedMessage
from sm.messages.interrupt import Interrupted, interrupt, settle_interrupted
from sm.messages.observe import Sight
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent_state
from sm.sessions.session import Session
from sm.store.files import write_atomic, write_json
from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for
from tests.messages.test_delivery import agent_of, deliver, launch, waiting
from tests.terminal import received

CLAUDE = structs.replace(GENERIC, hooks="claude")
CODEX = structs.replace(GENERIC, hooks="codex")
COLOURED = structs.replace(CLAUDE, idle_colour="39", busy=("^working",))
"""A client whose prompt shows by its colour that it is idle."""
INDETERMINATE = Outcome(Status.INDETERMINATE)


@pytest.fixture
def target(root: Root, tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(draft, "RECEIPT_S", 0.05)
    monkeypatch.setattr(draft, "PIECE_S", 0.0)
    monkeypatch.setattr(observe, "PIECE_S", 0.0)
    monkeypatch.setattr(observe, "DOUBT_S", 0.0)
    return launch(root, tmux, tmp_path, "❯\u00a0", CLAUDE)


def of(target: Session, profile: Profile) -> Session:
    return target.change().provide(tmux=target.tmux, profile=profile)


def says(
    target: Session,
    state: str,
    *,
    since: float = 1000.0,
    prompt: str = "p1",
    active: float = 1000.0,
) -> None:
    """What its hooks have last said of it."""
    directory = target.dir
    write_atomic(directory.state, f"{state} {since:.6f} c1 {prompt}\n")
    write_atomic(directory.events, "")
    os.utime(directory.events, (active, active))


@pytest.fixture
def transcript(target: Session, tmp_path: Path) -> Path:
    """Where the agent writes its conversation down, as its hooks have said."""
    path = tmp_path / "conversation.jsonl"
    path.touch()
    write_atomic(target.dir.context, json.dumps({"transcript_path": str(path)}))
    says(target, "idle")
    return path


def writes_down(path: Path, text: str, at: float | None = None) -> None:
    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC).isoformat()
    said = {"role": "user", "content": text}
    count = len(path.read_text().splitlines())
    before = f"u{count - 1}" if count else None
    line: dict[str, Any] = {"type": "user", "uuid": f"u{count}", "parentUuid": before}
    with path.open("a") as file:
        file.write(json.dumps(line | {"timestamp": moment, "message": said}) + "\n")


def handed(
    target: Session, ident: str, text: str, line: str, created_at: float = 2000.0
) -> Message:
    """A message that a hook has handed out; `line` is what it notes behind the name."""
    message = Message(id=ident, text=text, created_at=created_at)
    directory = target.dir
    queue.put(directory, message)
    queue.move(directory, message, MessageFolder.WAITING, MessageFolder.HANDED)
    with directory.offered.open("a") as file:
        file.write(f"{message.name} {line}\n")
    directory.offered.chmod(0o600)
    return message


@pytest.mark.parametrize("profile", [CODEX, CLAUDE], ids=["codex", "hooks that are never called"])
def test_a_message_that_cannot_be_looked_up_is_not_typed_again(
    target: Session, log: Path, profile: Profile
) -> None:
    told = of(target, profile)
    assert deliver(told, "first") == INDETERMINATE
    assert delivery.drain(told) is None
    assert deliver(told, "second", "bbbbbbbb") == INDETERMINATE  # nor does it hold another one up
    for _ in range(3):
        delivery.drain(told)
    wait_for(lambda: len(received(log)) == 2, "both")
    assert received(log) == ["first", "second"]
    assert delivery.find_outcome(told, "aaaaaaaa") == INDETERMINATE
    queue.accept(told.dir, "aaaaaaaa")  # its receipt was only late
    delivery.drain(told)
    assert delivery.find_outcome(told, "aaaaaaaa").status is Status.ACCEPTED


def test_a_message_that_provably_was_not_heard_is_typed_again(
    target: Session, transcript: Path, log: Path
) -> None:
    writes_down(transcript, "text", at=1000.0)  # another one of the same words, long ago
    assert deliver(target, "text") == INDETERMINATE
    assert delivery.drain(target) is Refusal.HANDED
    wait_for(lambda: received(log) == ["text", "text"], "the second try")
    writes_down(transcript, "text")
    assert delivery.drain(target) is None
    assert delivery.find_outcome(target, "aaaaaaaa").status is Status.ACCEPTED


WIDE = f"[sm] {'far ' * 30}end"


def stands(target: Session, added: str = "", instead: str = "") -> Typed:
    """What is known of a wide message while the composer shows it, wrapped as there."""
    ident = "aaaaaaaa"
    message = Message(id=ident, text=WIDE)
    queue.put(target.dir, message)
    queue.move(target.dir, message, MessageFolder.WAITING, MessageFolder.HANDED)
    write_json(target.dir.typed, TypedMessage(ident, 1, WIDE, time.time()))
    pane, _ = target.tmux.look(agent_of(target).pane_id)
    screen = Screen(Prompt.IDLE, instead or f"{WIDE[:78]}\n{WIDE[78:]}{added}")
    facts = observe.observe_handed(
        target, Sight(pane, screen, agent_state.read(target.dir)), message, passes=True
    ).facts
    assert isinstance(facts, Typed)
    return facts


def test_a_message_that_stands_there_is_not_submitted_with_what_a_person_has_added(
    target: Session,
) -> None:
    assert stands(target).stands
    added = stands(target, added=" but not now")
    assert not added.stands
    assert added.is_left, "to type it again would have it there twice"


def test_a_short_first_line_is_enough_where_the_others_are_not_shown(target: Session) -> None:
    """Codex has no frame: what is read of its composer is the row with the glyph."""
    ident, text = "aaaaaaaa", "[sm] message from ann:\nthe tests are green"
    message = Message(id=ident, text=text)
    queue.put(target.dir, message)
    queue.move(target.dir, message, MessageFolder.WAITING, MessageFolder.HANDED)
    write_json(target.dir.typed, TypedMessage(ident, 1, text.split("\n")[0], time.time()))
    pane, _ = target.tmux.look(agent_of(target).pane_id)
    screen = Screen(Prompt.IDLE, "[sm] message from ann:")
    facts = observe.observe_handed(
        target, Sight(pane, screen, agent_state.read(target.dir)), message, passes=True
    ).facts
    assert isinstance(facts, Typed)
    assert facts.stands


def test_a_draft_of_a_person_alone_does_not_hold_up_a_message_that_was_not_heard(
    target: Session,
) -> None:
    assert not stands(target, instead="what I want to say").is_left


def test_a_message_that_was_not_heard_is_typed_again_although_another_was_typed_since(
    target: Session, transcript: Path, log: Path
) -> None:
    """Tmux remembers its first attempt: that one would not be typed."""
    deliver(target, "first")
    first = queue.find(target.dir, MessageFolder.HANDED, "aaaaaaaa")
    assert first
    write_json(target.dir.typed, TypedMessage("bbbbbbbb", 1, "urgent", 2000.0))
    assert transcript.is_file()
    delivery.drain(target)
    wait_for(lambda: received(log) == ["first", "first"], "the second try")


def test_the_first_message_of_a_context_is_typed_again_although_nothing_is_written_down(
    target: Session, transcript: Path, log: Path
) -> None:
    transcript.unlink()
    says(target, "idle", prompt="-")
    deliver(target, "text")
    delivery.drain(target)
    wait_for(lambda: received(log) == ["text", "text"], "the second try")


def test_a_message_whose_line_alone_arrived_is_not_with_the_agent(
    target: Session, transcript: Path, log: Path
) -> None:
    told = of(target, structs.replace(CLAUDE, hook_characters=9000))
    assert deliver(told, "/a command") == INDETERMINATE
    writes_down(transcript, "[sm] /a command, message aaaaaaaa: its text comes with this prompt.")
    delivery.drain(told)
    assert delivery.find_outcome(told, "aaaaaaaa") == INDETERMINATE
    wait_for(lambda: len(received(log)) == 2, "the second try")


def test_what_a_hook_has_handed_to_a_codex_that_was_stopped_is_not_handed_out_again(
    target: Session, log: Path
) -> None:
    told = of(target, CODEX)
    handed(told, "aaaaaaaa", "steered", "c1 p0")
    handed(told, "bbbbbbbb", "before the summing up", f"c1 compacted:{time.time()}")
    says(told, "idle")
    assert deliver(told, "another", "cccccccc") == INDETERMINATE  # typed, no hook confirms it here
    wait_for(lambda: received(log) == ["another"], "the message that was typed")
    for ident in ("aaaaaaaa", "bbbbbbbb"):
        assert delivery.find_outcome(told, ident) == INDETERMINATE


def test_what_was_handed_over_in_this_turn_may_still_be_proven(target: Session) -> None:
    told = of(target, CODEX)
    handed(told, "aaaaaaaa", "steered", "c1 p1")
    says(told, "busy", active=time.time())
    assert delivery.drain(told) is Refusal.HANDED
    assert delivery.find_outcome(told, "aaaaaaaa") == waiting(Refusal.HANDED)


def test_an_offer_in_a_turn_that_a_person_has_interrupted_is_looked_for(
    target: Session, transcript: Path, log: Path
) -> None:
    """No hook tells of that: the turn seemed to go on, and nothing was typed any more."""
    assert transcript.is_file()
    handed(target, "aaaaaaaa", "lost", f"c1 p1 {time.time() - 5:.6f}")
    says(target, "busy")
    delivery.drain(target)
    wait_for(lambda: received(log) == ["lost"], "the message again")


def test_an_offer_of_just_now_is_not_doubted_for_an_idle_prompt(
    target: Session, transcript: Path, log: Path
) -> None:
    assert transcript.is_file()
    handed(target, "aaaaaaaa", "on its way", f"c1 p1 {time.time():.6f}")
    says(target, "busy")
    assert delivery.drain(target) is Refusal.HANDED
    assert not received(log)


def test_an_offer_is_looked_for_from_its_own_time_on(
    target: Session, transcript: Path, log: Path
) -> None:
    at = time.time() - 100
    writes_down(transcript, "continue", at=at - 50)
    handed(target, "aaaaaaaa", "continue", f"c1 p0 {at:.6f}")
    delivery.drain(target)
    wait_for(lambda: received(log) == ["continue"], "the message again")


def test_an_offer_with_its_time_that_was_heard_is_accepted(
    target: Session, transcript: Path, log: Path
) -> None:
    at = time.time() - 100
    writes_down(transcript, "continue", at=at + 0.2)
    handed(target, "aaaaaaaa", "continue", f"c1 p0 {at:.6f}")
    assert delivery.drain(target) is None
    assert delivery.find_outcome(target, "aaaaaaaa").status is Status.ACCEPTED
    assert not received(log)


def test_offers_that_are_settled_already_are_dropped_with_the_next_one(
    target: Session, transcript: Path
) -> None:
    directory = target.dir
    done = handed(target, "aaaaaaaa", "done", "c1 p0 1.5")
    queue.accept(directory, done.id)
    queue.settle(directory, done)
    accepted = handed(target, "bbbbbbbb", "accepted", "c1 p0")
    queue.accept(directory, accepted.id)
    heard = handed(target, "cccccccc", "heard", "c1 p0")
    of_now = f"c1 p1 {time.time():.6f}"
    left = handed(target, "dddddddd", "of this turn", of_now)
    writes_down(transcript, "heard")
    says(target, "busy", active=time.time())
    assert delivery.drain(target) is Refusal.HANDED
    assert queue.find_place(directory, heard.id) is MessageFolder.DONE
    assert directory.offered.read_text() == f"{left.name} {of_now}\n"


def test_an_offer_that_was_cancelled_leaves_no_hook_in_doubt(
    target: Session, transcript: Path
) -> None:
    directory = target.dir
    cancelled = handed(target, "aaaaaaaa", "cancelled", f"c1 compacted:{time.time()}")
    left = handed(target, "bbbbbbbb", "of this turn", "c1 p1 2.5")
    (directory.queue / MessageFolder.HANDED / cancelled.name).unlink()
    says(target, "busy", active=time.time())
    assert delivery.drain(target) is Refusal.HANDED
    assert directory.offered.read_text() == f"{left.name} c1 p1 2.5\n"


def test_a_compaction_that_came_to_nothing_does_not_double_what_was_heard(
    target: Session, transcript: Path, log: Path
) -> None:
    writes_down(transcript, "the text", at=2001.0)
    handed(target, "aaaaaaaa", "the text", "c1 compacted:2002.000000")
    assert delivery.drain(target) is None
    assert delivery.find_outcome(target, "aaaaaaaa").status is Status.ACCEPTED
    assert not received(log)


def test_an_agent_whose_hooks_say_busy_is_not_typed_into(target: Session, log: Path) -> None:
    says(target, "busy", active=time.time() - 30)
    assert deliver(of(target, CODEX), "text") == waiting(Refusal.BUSY)
    assert not received(log)


def draw(target: Session, text: str = "\x1b7\x1b8") -> None:
    """Let something new appear in its terminal."""
    tty = target.tmux.command(
        "display-message", "-p", "-t", agent_of(target).pane_id, "#{pane_tty}"
    )
    Path(tty.strip()).write_text(text)


def test_a_long_answer_is_not_typed_into_while_it_is_drawn(target: Session, log: Path) -> None:
    says(target, "busy", active=time.time() - observe.AT_WORK_S - 5)
    draw(target)
    assert deliver(of(target, CODEX), "text") == waiting(Refusal.BUSY)
    says(target, "busy", active=time.time() - observe.LONG_ANSWER_S - 5)
    draw(target)
    assert delivery.drain(of(target, CODEX)) is Refusal.HANDED
    assert wait_for(lambda: received(log), "the message") == ["text"]


def test_a_busy_state_that_an_interruption_has_left_behind_does_not_last(
    target: Session, log: Path
) -> None:
    told = of(target, CODEX)
    says(told, "busy", active=time.time() - observe.AT_WORK_S - 5)
    queue.put(told.dir, Message(id="aaaaaaaa", text="text"))

    def gets_it() -> list[str]:
        delivery.drain(told)
        return received(log)

    assert wait_for(gets_it, "the message") == ["text"]


def test_a_colour_that_tells_idle_is_believed_at_once(target: Session, log: Path) -> None:
    says(target, "busy", active=time.time() - 1)
    assert deliver(of(target, structs.replace(CODEX, idle_colour="39")), "text") == INDETERMINATE
    assert wait_for(lambda: received(log), "the message") == ["text"]


def test_a_dialog_that_was_answered_is_none(root: Root, tmux: Tmux, tmp_path: Path) -> None:
    profile = structs.replace(CLAUDE, busy=("^working",))
    target = launch(root, tmux, tmp_path, "working …\r\n❯\u00a0", profile)
    says(target, "dialog", since=time.time() - 5)
    assert deliver(target, "text") == waiting(Refusal.BUSY)
    says(target, "dialog", since=time.time())
    assert delivery.drain(target) is Refusal.DIALOG


@pytest.mark.parametrize("is_first", [False, True])
def test_a_turn_that_is_drawn_late_is_not_typed_into(
    target: Session, transcript: Path, log: Path, is_first: bool
) -> None:
    """The client kept what was typed in a queue of its own: a later message was heard before it.

    In the first turn of a context its transcript is not there yet.
    """
    if is_first:
        transcript.unlink()
    else:
        writes_down(transcript, "before")
    says(target, "busy", since=time.time())
    late = threading.Timer(3 * observe.REDRAW_S, draw, (target, "\r\nworking …\r\n❯\u00a0"))
    late.start()
    assert deliver(of(target, COLOURED), "text") == waiting(Refusal.BUSY)
    late.join()
    assert not log.exists()


def test_a_turn_that_a_person_has_stopped_at_once_is_not_waited_for(
    target: Session, transcript: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observe, "BEGUN_S", 2 * HANG_S)
    says(target, "busy", since=time.time())
    writes_down(transcript, "[Request interrupted by user]", time.time() + 0.01)
    began = time.monotonic()
    assert deliver(of(target, COLOURED), "text") == INDETERMINATE
    assert time.monotonic() - began < HANG_S
    assert wait_for(lambda: received(log), "the message") == ["text"]


def test_a_clock_that_was_set_back_does_not_hold_the_lock(
    root: Root, tmux: Tmux, tmp_path: Path
) -> None:
    target = launch(root, tmux, tmp_path, "working …\r\n❯\u00a0", CLAUDE)
    profile = structs.replace(CLAUDE, busy=("^working",))
    says(target, "idle", since=time.time() + 10 * HANG_S)
    began = time.monotonic()
    assert deliver(of(target, profile), "text") == waiting(Refusal.BUSY)
    assert time.monotonic() - began < HANG_S


def typed_and_done(target: Session, ident: str, text: str) -> Message:
    directory = target.dir
    message = Message(id=ident, text=text, created_at=2000.0)
    queue.put(directory, message)
    queue.move(directory, message, MessageFolder.WAITING, MessageFolder.DONE)
    write_json(directory.typed, TypedMessage(ident, 1, text, 2000.0))
    return message


def test_an_interruption_that_was_refused_is_not_waited_for(
    target: Session, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "INTERRUPT_S", 2 * HANG_S)
    typed_and_done(target, "aaaaaaaa", "before")
    pane, _ = target.tmux.look(agent_of(target).pane_id)
    stale = Screen(Prompt.BUSY, row="❯\u00a0gone since")
    began = time.monotonic()
    assert interrupt(target, pane, stale, Message(id="bbbbbbbb", text="stop")) is None
    assert time.monotonic() - began < HANG_S
    assert not target.dir.interrupted.exists()
    interrupted(target, "aaaaaaaa", "bbbbbbbb")  # an earlier one, which was not refused
    assert interrupt(target, pane, stale, Message(id="bbbbbbbb", text="stop")) is None
    assert target.dir.interrupted.exists()
    assert not log.exists()


def interrupted(target: Session, ident: str, by: str, typed_at: float = 2000.0) -> None:
    found = Interrupted(ident, by, time.time(), typed_at)
    write_json(target.dir.interrupted, found)


def work_on(target: Session, transcript: Path, text: str) -> Message:
    """Have the agent be at work on a message that was typed and confirmed."""
    message = typed_and_done(target, "aaaaaaaa", text)
    writes_down(transcript, text)
    says(target, "busy")
    return message


@pytest.mark.parametrize("added", ["", " but not now"])
def test_a_text_is_erased_only_as_long_as_a_person_has_added_nothing(
    root: Root, tmux: Tmux, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch, added: str
) -> None:
    monkeypatch.setattr(interruption, "INTERRUPT_S", 0.5)
    profile = structs.replace(CLAUDE, erase_key="C-u")
    target = launch(root, tmux, tmp_path, f"❯\u00a0Stop that at once.{added}", profile)
    typed_and_done(target, "aaaaaaaa", "Stop that at once.")
    pane, _ = target.tmux.look(agent_of(target).pane_id)
    assert interruption.erase(target, pane) is None, "this composer keeps what it has"
    pressed = log.read_bytes().count(b"\x15") if log.exists() else 0
    assert bool(pressed) is not bool(added)


def interrupt_now(target: Session) -> float:
    """Interrupt for another message; returns the seconds that it took."""
    began = time.monotonic()
    pane, shown = target.tmux.look(agent_of(target).pane_id, escapes=True)
    interrupt(target, pane, read_screen(CLAUDE, shown), Message(id="bbbbbbbb", text="stop"))
    return time.monotonic() - began


def test_a_prompt_that_comes_back_late_is_waited_for(target: Session, transcript: Path) -> None:
    """The other message was typed behind it: both were one prompt, and the first was not sent."""
    message = work_on(target, transcript, "before")
    late = threading.Timer(1.5, draw, (target, "\r❯\u00a0before"))
    late.start()
    interrupt_now(target)
    late.join()
    assert queue.find_place(target.dir, message.id) is MessageFolder.WAITING


def test_a_turn_that_ends_with_its_prompt_kept_is_not_waited_for(
    target: Session, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "RETURN_S", 2 * HANG_S)
    work_on(target, transcript, "before")
    line = "[Request interrupted by user]"
    threading.Timer(0.2, writes_down, (transcript, line)).start()
    assert interrupt_now(target) < HANG_S


def test_the_prompt_of_an_answered_turn_is_not_waited_for(
    target: Session, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "RETURN_S", 2 * HANG_S)
    work_on(target, transcript, "before")
    with target.dir.events.open("a") as events:
        events.write("2000.000000 UserPromptSubmit c1 -\n2001.000000 PostToolUse c1 Bash\n")
    assert interrupt_now(target) < HANG_S


def test_an_interruption_for_a_message_that_was_cancelled_is_settled(
    target: Session, transcript: Path
) -> None:
    typed_and_done(target, "aaaaaaaa", "before")
    writes_down(transcript, "before", at=2001.0)
    writes_down(transcript, "and on", at=2002.0)
    urgent = Message(id="bbbbbbbb", text="stop", mode=Mode.URGENT)
    queue.put(target.dir, urgent)
    interrupted(target, "aaaaaaaa", urgent.id)
    assert settle_interrupted(target)
    assert target.dir.interrupted.exists()
    queue.withdraw(target.dir, urgent.id)
    assert settle_interrupted(target)
    assert not target.dir.interrupted.exists()


def test_a_prompt_that_was_taken_back_is_not_kept_for_its_words_of_old(
    target: Session, transcript: Path
) -> None:
    message = typed_and_done(target, "aaaaaaaa", "continue")
    writes_down(transcript, "continue", at=1000.0)
    writes_down(transcript, "continue", at=2001.0)
    lines = transcript.read_text().splitlines()
    urgent = json.loads(lines[1]) | {"uuid": "u2", "parentUuid": "u0", "message": {"content": "!"}}
    transcript.write_text("\n".join([*lines, json.dumps(urgent)]) + "\n")
    interrupted(target, message.id, "bbbbbbbb")
    assert settle_interrupted(target)
    assert queue.find_place(target.dir, message.id) is MessageFolder.WAITING


def test_a_prompt_that_was_taken_back_and_has_come_again_is_not_told_once_more(
    target: Session, transcript: Path
) -> None:
    """The process that put it back was killed. A hook handed it over; no line tells that yet."""
    writes_down(transcript, "before", at=1000.0)
    found = Interrupted("aaaaaaaa", "bbbbbbbb", at=time.time() - 1, typed_at=2000.0)
    write_json(target.dir.interrupted, found)
    writes_down(transcript, "stop that")
    message = typed_and_done(target, "aaaaaaaa", "continue")
    assert settle_interrupted(target)
    assert queue.find_place(target.dir, message.id) is MessageFolder.DONE
    assert not target.dir.interrupted.exists()


def test_a_prompt_that_was_interrupted_before_it_was_written_down_waits_again(
    target: Session, transcript: Path
) -> None:
    """After half a minute it counted as heard: a slow agent CLI had forgotten it."""
    message = typed_and_done(target, "aaaaaaaa", "continue")
    os.utime(target.dir.queue / MessageFolder.DONE / message.name, (2001.0, 2001.0))
    writes_down(transcript, "before", at=1000.0)
    found = Interrupted(message.id, "bbbbbbbb", at=time.time() - 60, typed_at=2000.0)
    write_json(target.dir.interrupted, found)
    writes_down(transcript, "stop that")
    assert settle_interrupted(target)
    assert queue.find_place(target.dir, message.id) is MessageFolder.WAITING


def test_a_clock_that_was_set_back_leaves_no_interruption_open(
    target: Session, transcript: Path
) -> None:
    message = typed_and_done(target, "aaaaaaaa", "continue")
    writes_down(transcript, "before", at=1000.0)
    later = time.time() + 3600
    write_json(target.dir.interrupted, Interrupted(message.id, "bbbbbbbb", later, later))
    assert settle_interrupted(target)


@pytest.mark.parametrize("profile", [CODEX, GENERIC], ids=["codex", "generic"])
def test_an_interruption_into_which_nobody_can_look_holds_nothing_up(
    target: Session, profile: Profile
) -> None:
    message = typed_and_done(target, "aaaaaaaa", "before")
    interrupted(target, message.id, "bbbbbbbb")
    assert settle_interrupted(of(target, profile))
    assert queue.find_place(target.dir, message.id) is MessageFolder.DONE
    assert not target.dir.interrupted.exists()
