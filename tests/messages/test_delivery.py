from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import find
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.tmux import Tmux
from sm.adapters.tmux_start import start_session
from sm.base.refusal import Outcome, Refusal, Status
from sm.messages import delivery, queue
from sm.messages.draft import TypedMessage, list_keys, type_message
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent as agents
from sm.sessions import agent_process, registry
from sm.sessions.agent import Agent
from sm.sessions.session import Session
from sm.store import lock
from sm.store.files import read_json
from sm.store.paths import Root
from tests.helpers import wait_for
from tests.terminal import argv, launch_of, make_project, make_session, received

TYPED = Outcome(Status.TYPED)
GENERIC = find("generic", {})


def launch(root: Root, tmux: Tmux, folder: Path, show: str, profile: Profile = GENERIC) -> Session:
    project = make_project(folder, argv(folder, folder / "log"), env={"SHOW": show})
    session = registry.create(root, make_session(root, folder / "work"))
    agent = agent_process.launch(tmux, session, launch_of(project), generation=1)
    last = show.rstrip().split("\n")[-1].strip()
    wait_for(lambda: last in tmux.capture(agent.pane_id), "its screen")
    return session.provide(tmux=tmux, profile=profile)


def agent_of(target: Session) -> Agent:
    agent = agents.load(target.dir)
    assert agent is not None
    return agent


@pytest.fixture
def target(root: Root, tmux: Tmux, tmp_path: Path) -> Session:
    return launch(root, tmux, tmp_path, "─────\r\n❯\u00a0\r\n─────\r\n  status line")


def refused(refusal: Refusal) -> Outcome:
    return Outcome(Status.REFUSED, refusal)


def waiting(refusal: Refusal) -> Outcome:
    return Outcome(Status.WAITING, refusal)


def deliver(
    target: Session, text: str, ident: str = "aaaaaaaa", mode: Mode = Mode.SEQUENTIAL
) -> Outcome:
    return delivery.deliver(target, Message(id=ident, text=text, mode=mode))


def test_a_message_is_delivered_once(target: Session, log: Path) -> None:
    assert deliver(target, "CI passed\r\n\x1b[31mwell\x1b[0m done\n") == TYPED
    assert deliver(target, "CI passed") == TYPED
    assert wait_for(lambda: received(log), "the message") == ["CI passed\nwell done"]


@pytest.mark.parametrize("text", ["/clear", "!id", "exit", "1. Yes"])
def test_a_command_to_the_agent_arrives_as_text(target: Session, log: Path, text: str) -> None:
    assert deliver(target, text) == TYPED
    assert wait_for(lambda: received(log), "the message") == [f"Note: {text}"]


def test_what_a_tmux_that_does_not_answer_keeps_from_the_agent_waits(
    target: Session, tmux: Tmux, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is queued, so a caller that was told of an error would send it twice."""
    server = int(tmux.command("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("sm.adapters.tmux.TIMEOUT_S", 0.2)
            assert deliver(target, "CI passed") == waiting(Refusal.NO_TMUX)
    finally:
        os.kill(server, signal.SIGCONT)
    assert wait_for(lambda: deliver(target, "CI passed") == TYPED, "tmux")
    assert wait_for(lambda: received(log), "the message") == ["CI passed"]


def test_nothing_to_say_is_final(target: Session) -> None:
    assert deliver(target, "\x1b \u200b\n") == refused(Refusal.EMPTY)
    assert Refusal.EMPTY.is_final


def test_copy_mode_is_temporary(target: Session, tmux: Tmux) -> None:
    pane_id = agent_of(target).pane_id
    tmux.command("copy-mode", "-t", pane_id)
    assert deliver(target, "text") == waiting(Refusal.MODE)
    assert not Refusal.MODE.is_final
    tmux.command("send-keys", "-t", pane_id, "-X", "cancel")
    assert deliver(target, "text") == TYPED
    tmux.command("copy-mode", "-t", pane_id)
    assert deliver(target, "text") == TYPED


def test_an_agent_without_its_input_line_gets_nothing(
    root: Root, tmux: Tmux, tmp_path: Path, log: Path
) -> None:
    target = launch(root, tmux, tmp_path, "starting ❯ …\r\n> is no prompt\r\n")
    assert deliver(target, "text") == waiting(Refusal.NO_PROMPT)
    assert not Refusal.NO_PROMPT.is_final
    assert not log.exists()


def test_an_input_line_far_up_is_none(root: Root, tmux: Tmux, tmp_path: Path) -> None:
    target = launch(root, tmux, tmp_path, "❯ old\r\n" + "output\r\n" * 12 + "end")
    assert deliver(target, "text") == waiting(Refusal.NO_PROMPT)


def test_an_open_dialog_is_not_answered(root: Root, tmux: Tmux, tmp_path: Path, log: Path) -> None:
    target = launch(root, tmux, tmp_path, "❯ do it\r\nMay I?\r\n ❯ 1. Yes\r\n   2. No")
    assert deliver(target, "text") == waiting(Refusal.DIALOG)
    assert not Refusal.DIALOG.is_final
    assert not log.exists()


def test_a_message_of_old_that_looks_like_a_choice_is_no_dialog(
    root: Root, tmux: Tmux, tmp_path: Path
) -> None:
    target = launch(root, tmux, tmp_path, "❯ 1. this\r\n" + "output\r\n" * 12 + "❯\u00a0")
    assert deliver(target, "text") == TYPED


def test_a_glyph_of_ascii_characters_is_looked_for_literally(
    root: Root, tmux: Tmux, tmp_path: Path
) -> None:
    profile = find("odd", {"odd": {"glyph": "$}"}})
    assert deliver(launch(root, tmux, tmp_path, "$} ", profile), "text") == TYPED


def test_of_a_message_that_was_taken_back_no_more_is_waited_for(
    target: Session, tmux: Tmux
) -> None:
    tmux.command("copy-mode", "-t", agent_of(target).pane_id)
    assert deliver(target, "text") == waiting(Refusal.MODE)
    assert queue.withdraw(target.dir, "aaaaaaaa")
    found = delivery.find_outcome(target, "aaaaaaaa", Refusal.MODE)
    assert found == refused(Refusal.WITHDRAWN)
    assert not found.is_open


def test_an_agent_that_is_gone_is_final(target: Session, tmux: Tmux, tmp_path: Path) -> None:
    agent = agent_of(target)
    keeper = start_session(tmux, "keeper", tmp_path, ["cat"])
    os.kill(agent.pid, signal.SIGKILL)
    wait_for(lambda: tmux.pane(agent.session) is None, "its end")
    assert deliver(target, "text") == refused(Refusal.GONE)
    assert Refusal.GONE.is_final
    # A newer session of the same name is not the agent that the message is for.
    other = start_session(tmux, agent.session, tmp_path, ["cat"])
    assert deliver(target, "text") == refused(Refusal.GONE)
    tmux.kill(agent.session, other.pid)
    tmux.kill("keeper", keeper.pid)
    assert deliver(target, "text") == refused(Refusal.GONE)


def test_a_dead_pane_is_refused_and_the_server_lives(target: Session, tmux: Tmux) -> None:
    agent = agent_of(target)
    tmux.command("set-option", "-w", "-t", agent.pane_id, "remain-on-exit", "on")
    os.kill(agent.pid, signal.SIGKILL)
    wait_for(lambda: tmux.panes()[agent.session].dead, "its end")
    assert deliver(target, "text") == refused(Refusal.GONE)
    assert tmux.panes()[agent.session].dead


def test_what_a_person_has_half_typed_is_neither_sent_nor_joined(
    root: Root, tmux: Tmux, tmp_path: Path, log: Path
) -> None:
    target = launch(root, tmux, tmp_path, "❯ half a li")
    assert deliver(target, "text") == waiting(Refusal.DRAFT)
    assert not log.exists()


def test_waiting_messages_go_in_order_as_soon_as_they_can(
    target: Session, tmux: Tmux, log: Path
) -> None:
    pane_id = agent_of(target).pane_id
    tmux.command("copy-mode", "-t", pane_id)
    deliver(target, "first", "aaaaaaaa")
    deliver(target, "second", "bbbbbbbb")
    deliver(target, "important", "cccccccc", Mode.IMPORTANT)
    tmux.command("send-keys", "-t", pane_id, "-X", "cancel")
    assert deliver(target, "third", "dddddddd") == TYPED
    assert wait_for(lambda: len(received(log)) == 4 and received(log), "all") == [
        *("important", "first", "second", "third")
    ]


def test_one_at_a_time_hands_over(
    target: Session, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "LOCK_S", 0.05)
    with lock.hold(target.dir.delivery_lock, timeout_s=1):
        assert deliver(target, "text") == waiting(Refusal.BEHIND)
    assert delivery.drain(target) is None
    assert wait_for(lambda: received(log), "the message") == ["text"]


def test_nothing_is_handed_over_while_the_context_is_replaced(target: Session, log: Path) -> None:
    target.dir.hold.touch()
    assert deliver(target, "text") == waiting(Refusal.HOLD)
    assert not log.exists()


def test_a_text_that_is_too_long_is_refused_and_not_queued(target: Session) -> None:
    assert deliver(target, "x" * (delivery.TEXT_LIMIT + 1)) == refused(Refusal.LONG)
    assert queue.is_empty(target.dir)


def test_a_message_for_a_dead_agent_is_not_kept_for_the_next(target: Session, tmux: Tmux) -> None:
    agent_process.stop(tmux, target)
    assert deliver(target, "text") == refused(Refusal.GONE)
    assert queue.find_place(target.dir, "aaaaaaaa") is None


def test_an_agent_without_a_terminal_is_refused(target: Session) -> None:
    app = target.change().provide(tmux=target.tmux, profile=find("codex-app", {}))
    assert deliver(app, "text") == refused(Refusal.NO_TERMINAL)


def test_what_stands_in_the_queue_is_named_by_its_place(target: Session) -> None:
    deliver(target, "text")
    assert [m.text for m in queue.list_messages(target.dir, MessageFolder.DONE)] == ["text"]


def test_what_was_refused_does_not_pass_for_what_was_typed_last(target: Session) -> None:
    assert deliver(target, "first") == TYPED
    second = Message(id="bbbbbbbb", text="second")
    queue.put(target.dir, second)
    queue.move(target.dir, second, MessageFolder.WAITING, MessageFolder.HANDED)
    pane, shown = target.tmux.look(agent_of(target).pane_id, escapes=True)
    stale = read_screen(target.profile, shown.replace("❯\u00a0", "❯\u00a0gone since"))
    assert type_message(target, pane, stale, second) is Refusal.CHANGED
    typed = read_json(target.dir.typed, TypedMessage)
    assert typed
    assert typed.id == "aaaaaaaa"


def test_one_that_was_typed_in_vain_holds_no_other_up(
    target: Session, tmux: Tmux, log: Path
) -> None:
    lost = Message(id="bbbbbbbb", text="lost", created_at=1.0)
    queue.put(target.dir, lost)
    queue.move(target.dir, lost, MessageFolder.WAITING, MessageFolder.HANDED)
    for key in list_keys(lost.id):
        tmux.command("set-option", "-p", "-t", agent_of(target).pane_id, f"@sm_typed_{key}", "1")
    assert deliver(target, "another") == TYPED
    assert wait_for(lambda: received(log), "the message") == ["another"]
    assert delivery.find_outcome(target, lost.id) == Outcome(Status.INDETERMINATE)


def test_the_keys_of_the_profile_send_what_is_typed(target: Session, log: Path) -> None:
    profile = find("odd", {"odd": {"submit_keys": ["C-o", "Enter"]}})
    assert deliver(target.change().provide(tmux=target.tmux, profile=profile), "text") == TYPED
    wait_for(lambda: log.exists() and log.read_bytes().endswith(b"text\x1b[201~\x0f\r"), "the keys")


def test_a_wrapper_that_shows_that_its_agent_has_ended_is_refused(
    root: Root, tmux: Tmux, tmp_path: Path, log: Path
) -> None:
    profile = find("wrapped", {"wrapped": {"gone": ["^The agent has ended"]}})
    target = launch(root, tmux, tmp_path, "The agent has ended.\r\n❯\u00a0", profile)
    assert deliver(target, "text") == refused(Refusal.GONE)
    assert not log.exists()


def test_what_the_profile_calls_a_command_arrives_as_text(target: Session, log: Path) -> None:
    fields = {"command_characters": "%", "leave": ["bye"]}
    odd = target.change().provide(tmux=target.tmux, profile=find("odd", {"odd": fields}))
    for number, text in enumerate(("%clear", "Bye", "/clear", "exit")):
        assert deliver(odd, text, f"aaaaaaa{number}") == TYPED
    wait_for(lambda: len(received(log)) == 4, "all")
    assert received(log) == ["Note: %clear", "Note: Bye", "/clear", "exit"]
