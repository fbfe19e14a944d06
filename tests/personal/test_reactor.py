"""What a pass over an ad-hoc session finds out, and whom it tells."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import yaml
from msgspec import structs

from sm.adapters import procfs
from sm.base.refusal import Refusal
from sm.messages import queue
from sm.messages.follow_up import plan_next_try
from sm.messages.queue import Message, Mode
from sm.personal.reactor import run_pass
from sm.personal.tick import keep_watched
from sm.sessions import agent_state, registry
from sm.sessions.agent import load
from sm.sessions.agent_state import State
from sm.sessions.session import AdHocSession
from sm.sessions.signs import DIALOG_PATIENCE_S
from sm.store import journal
from sm.store.files import write_atomic
from sm.views.event_words import describe, name_event
from tests.company import SM, Company
from tests.helpers import wait_for


def child_of_ann(company: Company, provider: str = "peer") -> str:
    """Ann's child, called kid; returns its id."""
    company.new("ann")
    ident = company.run_in("ann", f"{SM} new --provider {provider} --name kid").split()[1]
    company.wait("kid")
    return ident


def test_a_parent_hears_that_its_child_waits_for_a_person(company: Company, tmp_path: Path) -> None:
    child_of_ann(company)
    directory, answered = company.session("kid").dir, tmp_path / "answered"
    company.sm("send", "kid", f"ask: {answered}")
    wait_for(lambda: agent_state.read(directory).state is State.DIALOG, "the dialog")
    company.run_in("ann", "true")
    assert not any("waits" in text for text in company.noted("ann"))
    said = agent_state.read(directory)
    since = time.time() - DIALOG_PATIENCE_S
    write_atomic(directory.state, f"dialog {since:.6f} {said.context} {said.prompt}\n")
    registry.poke(directory)
    told = "[sm] kid waits for a person: a dialog is open in its terminal"
    assert company.hears("ann", "kid waits") == told
    answered.touch()


def test_a_parent_hears_that_its_child_has_died(company: Company) -> None:
    child_of_ann(company)
    known = load(company.session("kid").dir)
    assert known
    os.kill(known.pid, signal.SIGKILL)
    assert company.hears("ann", "[sm] kid has") == "[sm] kid has died"


DYING = """\
umask 077
read -r pid _ <"$SM_SESSION_DIR/agent.pid"
echo "$(date +%s.%6N) PreCompact c1 auto" >>"$SM_SESSION_DIR/events"
kill -9 "$pid"
while kill -0 "$pid"; do :; done
"""


def test_a_parent_hears_of_a_compaction_right_before_its_childs_death(company: Company) -> None:
    """Both come while its monitor is just looking at it."""
    config = yaml.safe_load(company.config.read_text())
    peer = config["profiles"]["peer"]
    config["profiles"]["dying"] = peer | {"context_command": DYING}
    company.config.write_text(yaml.safe_dump(config))
    company.new("ann")
    company.run_in("ann", f"{SM} new --provider dying --name kid")
    assert company.hears("ann", "kid has died")
    assert company.hears("ann", "[sm context] Compaction fired for kid. Context was lost.")


def test_nobody_claims_to_know_how_an_agent_without_hooks_has_ended(company: Company) -> None:
    child_of_ann(company, "mute")
    known = load(company.session("kid").dir)
    assert known
    os.kill(known.pid, signal.SIGTERM)
    assert company.hears("ann", "[sm] kid has") == "[sm] kid has ended"
    assert company.session("kid").dir.over.read_text() == "has ended\n"


def test_an_agent_that_outlives_its_terminal_is_not_taken_for_a_living_session(
    company: Company,
) -> None:
    """It ignores the hang-up: nobody could ever tell it anything."""
    child_of_ann(company, "deaf")
    session = company.session("kid")
    known = load(session.dir)
    assert known
    session.tmux.command("kill-session", "-t", f"={session.name}")
    assert list(keep_watched(company.root)) == []
    told = "[sm] kid has lost its terminal, and runs on without one"
    assert company.hears("ann", "[sm] kid has") == told
    assert procfs.is_running(known.process)
    assert "has lost its terminal" in company.sm("send", "kid", "Hello?", code=1).stderr
    company.sm("kill", "kid")
    assert not procfs.is_running(known.process)


def test_the_sender_hears_of_a_turn_that_an_error_has_ended(company: Company) -> None:
    """Of a session without an issue nobody resumes the work."""
    company.new("ann")
    company.new("bob")
    company.send_from("ann", "bob", "Build it.\nfail:", "--notify-on-stop")
    told = company.hears("ann", "[sm] bob has ended its turn")
    assert "API Error: 529" in told


def test_waiting_for_an_agent_without_hooks_outlasts_the_prompt_that_it_still_shows(
    company: Company, tmp_path: Path
) -> None:
    company.new("bob", provider="mute")
    go = tmp_path / "go"
    company.sm("send", "bob", f"hold: {go}")
    assert company.sm("wait", "bob", "--timeout", "3", code=124).returncode == 124
    go.touch()
    company.wait("bob")


def test_a_parent_whose_files_are_broken_does_not_hold_up_its_child(company: Company) -> None:
    child_of_ann(company)
    queued = company.session("ann").dir.queue
    (queued / "new").rename(queued / "gone")
    (queued / "new").symlink_to("/")
    company.sm("send", "kid", "leave:", code=None)
    wait_for(company.session("kid").dir.over.exists, "its end")

    def is_settled() -> bool:
        """The parent is told if a pass of its own has put that in order, else it is said so."""
        story = [describe(event) for event in journal.read(company.root.journal)]
        return "[sm] kid has ended" in story or "cannot be told" in "\n".join(story)

    wait_for(is_settled, "what became of the news")


def test_a_session_whose_client_is_gone_is_dead_although_the_script_around_it_runs(
    company: Company,
) -> None:
    child_of_ann(company, "wrapped")
    directory = company.session("kid").dir
    client, known = int(directory.client.read_text()), load(directory)
    assert known
    assert client != known.pid
    os.kill(client, signal.SIGKILL)
    assert company.hears("ann", "[sm] kid has") == "[sm] kid has died"
    assert procfs.is_running(known.process)
    assert "'kid' has died" in company.sm("send", "kid", "Hello?", code=1).stderr
    company.sm("kill", "kid")
    assert not procfs.is_running(known.process)


def test_an_urgent_message_that_has_to_wait_is_tried_again_soon(company: Company) -> None:
    company.new("ann", provider="mute")
    session = company.session("ann")
    hooked = session.change().provide(profile=structs.replace(session.profile, hooks="claude"))
    queue.put(session.dir, Message(id=queue.make_id(), text="Later."))
    assert plan_next_try(hooked, agent_state.read(hooked.dir), Refusal.BUSY) > time.time() + 30
    queue.put(session.dir, Message(id=queue.make_id(), text="Now!", mode=Mode.URGENT))
    assert plan_next_try(hooked, agent_state.read(hooked.dir), Refusal.BUSY) < time.time() + 5


def test_a_rotation_that_tmux_does_not_answer_is_left_to_the_monitor(
    company: Company, tmp_path: Path
) -> None:
    company.new("ann")
    go, notes = tmp_path / "go", tmp_path / "notes.md"
    notes.write_text("# What is to be done next\n")
    company.sm("send", "ann", f"run: {SM} handoff {notes}\nhold: {go}")
    wait_for(lambda: company.noted("ann", "ran"), "the wish")
    odd = tmp_path / "odd" / "tmux"
    odd.parent.mkdir()
    odd.write_text("#!/bin/sh\necho odd >&2\nexit 1\n")
    odd.chmod(0o700)
    path = f"{odd.parent}:{os.environ['PATH']}"
    company.sm("rotate", company.session("ann").name, env={"PATH": path})
    odd.unlink()
    go.touch()
    company.hears("ann", "continue from where you left off")


def test_what_is_in_the_way_of_its_context_is_told_in_the_story_once(company: Company) -> None:
    company.new("ann")
    session = company.session("ann")
    assert isinstance(session, AdHocSession)
    session.dir.told.symlink_to("/nowhere")
    for _ in range(3):
        run_pass(session)
    told = [
        describe(one) for one in journal.read(company.root.journal) if name_event(one) == "problem"
    ]
    assert len([detail for detail in told if str(session.dir.told) in detail]) == 1
