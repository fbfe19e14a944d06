"""What a rotation sees of an agent that has no hooks: its screen alone."""

from __future__ import annotations

import time

from sm.context.observe import observe
from sm.context.rotation import Cause, begin
from sm.messages import queue
from sm.messages.observe import DRAWN_S
from sm.messages.queue import Message
from sm.sessions import agent_state, window
from sm.sessions.agent import load
from sm.sessions.agent_state import State
from sm.store.files import write_json
from tests.company import Company
from tests.helpers import wait_for


def test_an_agent_without_hooks_has_worked_once_its_screen_is_at_rest_again(
    company: Company,
) -> None:
    company.new("bob", provider="mute")
    session = company.session("bob")
    record = begin("r", Cause.COMMAND, time.time(), "")
    ident = queue.make_id()
    queue.put(session.dir, Message(id=ident, text="Go on."))
    company.hears("bob", "Go on.")
    asked_at = wait_for(lambda: queue.find_accepted_at(session.dir, ident), "the message")
    assert asked_at
    seen = observe(session, record)
    assert seen.alive
    assert seen.idle_since is None
    assert seen.worked_at < asked_at
    wait_for(
        lambda: observe(session, record).worked_at > asked_at,
        "rest",
    )
    assert observe(session, record).idle_since is not None


def test_an_agent_at_work_is_not_at_rest_however_quiet_it_is(company: Company) -> None:
    company.new("bob", provider="mute")
    go = company.folder / "go"
    company.sm("send", "bob", f"Work.\nhold: {go}")
    wait_for(lambda: "working" in company.sm("tail", "bob").stdout, "a busy screen")
    session = company.session("bob")
    record = begin("r", Cause.COMMAND, time.time(), "")

    def seen_idle() -> float | None:
        return observe(session, record).idle_since

    still_until = time.monotonic() + 6
    wait_for(lambda: time.monotonic() > still_until or seen_idle(), "some seconds of work")
    assert seen_idle() is None
    go.touch()
    wait_for(seen_idle, "the end of its work")


def test_a_dialog_that_was_turned_down_ends_the_turn_though_no_hook_tells(
    company: Company,
) -> None:
    company.new("ann")
    company.sm("send", "ann", f"ask: {company.folder / 'never'}")
    session = company.session("ann")
    record = begin("r", Cause.COMMAND, time.time(), "")
    directory = session.dir

    def seen_idle() -> float | None:
        return observe(session, record).idle_since

    wait_for(lambda: agent_state.read(directory).state is State.DIALOG, "the dialog")
    asked_at = agent_state.read(directory).since
    wait_for(lambda: seen_idle() or time.time() > asked_at + DRAWN_S, "it on the screen")
    assert seen_idle() is None
    pane = load(directory)
    assert pane
    session.tmux.command("send-keys", "-t", pane.pane_id, "Escape")
    assert wait_for(seen_idle, "the end of the turn")
    assert agent_state.read(directory).shown
    assert directory.state.read_text().startswith("dialog ")


def test_what_was_told_of_an_earlier_context_is_not_taken_for_that_of_the_present_one(
    company: Company,
) -> None:
    company.new("ann")
    session = company.session("ann")
    record = begin("r", Cause.COMMAND, time.time(), "")
    wait_for(lambda: agent_state.read(session.dir).context, "its start")
    seen, told = observe(session, record), window.read(session.dir)
    assert (seen.context, seen.begun, seen.launch) == (told.id, "startup", 1)
    assert 0 < seen.launched_at <= time.time()
    write_json(session.dir.context, {"session_id": "earlier", "source": "clear"})
    seen = observe(session, record)
    assert (seen.context, seen.begun, seen.begun_at) == (told.id, "", 0.0)
