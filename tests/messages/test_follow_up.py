"""Messages between sessions: real tmux, real monitors, real hooks; only the model is scripted."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.tmux import Tmux
from sm.base.errors import TemporaryError
from sm.messages.follow_up import see_to, tend_messages
from sm.sessions import agent_state
from sm.sessions.agent_state import AgentState, State
from sm.store import events, journal
from sm.store.lock import is_held
from sm.store.paths import Root, SessionDir
from tests.company import SM, Company
from tests.helpers import wait_for
from tests.residents import settle, target


def test_what_is_in_the_way_of_one_thing_is_noted_once_and_keeps_none_waiting(
    root: Root, tmp_path: Path
) -> None:
    session = settle(root, tmp_path, "s-ann")

    def fail() -> float:
        raise TemporaryError("no room")

    for _ in range(2):
        assert time.time() < see_to(session, fail) < time.time() + 60
    assert see_to(session, lambda: None) == math.inf
    assert see_to(session, lambda: 7.0) == 7.0
    (noted,) = journal.read(root.journal)
    assert isinstance(noted, events.Problem)
    assert (noted.session, noted.text) == ("s-ann", "no room")


def test_a_message_to_an_idle_agent_is_accepted(company: Company) -> None:
    company.new("ann")
    assert company.sm("send", "ann", "Hello.").stdout == "accepted by ann\n"
    wait_for(lambda: company.noted("ann") == ["Hello."], "the agent to note it")


def test_a_message_to_an_agent_without_hooks_is_typed(company: Company) -> None:
    company.new("mo", provider="mute")
    assert company.sm("send", "mo", "Hello.").stdout == "typed to mo (its client cannot confirm)\n"
    assert wait_for(lambda: company.noted("mo"), "the message") == ["Hello."]


def test_an_agent_at_work_gets_its_messages_when_its_turn_ends(company: Company) -> None:
    company.new("ann")
    go = company.folder / "go"
    company.sm("send", "ann", f"Work.\nhold: {go}")
    for mode, text in (("sequential", "one"), ("important", "two"), ("sequential", "three")):
        said = company.sm("send", "--mode", mode, "ann", text).stdout
        assert said.startswith("queued for ann: it is busy")
    waiting = json.loads(company.sm("queue", "ann", "--json").stdout)
    assert [(one["first_line"], one["place"]) for one in waiting] == [
        ("Work.", "delivered"),
        ("two", "waiting"),
        ("one", "waiting"),
        ("three", "waiting"),
    ]
    go.touch()
    company.hears("ann", "three")
    assert company.noted("ann") == [f"Work.\nhold: {go}", "two\n\none\n\nthree"]


def test_a_message_that_still_waits_can_be_taken_back(company: Company) -> None:
    company.new("ann")
    go = company.folder / "go"
    company.sm("send", "ann", f"Work.\nhold: {go}")
    first = json.loads(company.sm("send", "ann", "--json", "one").stdout)
    company.sm("send", "ann", "two")
    assert (
        company.sm("queue", "ann", "--cancel", first["id"]).stdout == f"took {first['id']} back\n"
    )
    again = company.sm("queue", "ann", "--cancel", first["id"], code=1)
    assert "there is none of this id" in again.stderr
    go.touch()
    company.hears("ann", "two")
    assert not any("one" in text for text in company.noted("ann"))


def test_sessions_talk_and_answer_by_name(company: Company) -> None:
    company.new("ann")
    company.new("bob")
    assert company.run_in("ann", f"{SM} send bob Hello") == "0\naccepted by bob\n"
    assert company.noted("bob") == ["[sm] message from ann:\nHello"]
    answer = company.run_in("bob", f"{SM} send ann 'Hi yourself' --mode important")
    assert answer.startswith("0\n")
    company.hears("ann", "[sm] message from bob:\nHi yourself")


def test_the_sender_hears_once_that_the_turn_has_ended(company: Company) -> None:
    company.new("ann")
    company.new("bob")
    go = company.folder / "go"
    letter = f"Build it.\nsay: All is built.\nhold: {go}"
    assert company.send_from("ann", "bob", letter, "--notify-on-stop") == "0\naccepted by bob\n"
    company.wait("ann")
    assert not any("has ended its turn" in text for text in company.noted("ann"))
    go.touch()
    told = company.hears("ann", "[sm] bob has ended its turn:\n--- begin its last message")
    assert "\nAll is built.\n--- end its last message" in told
    company.sm("send", "bob", "Another turn.")
    company.wait("bob")
    company.run_in("ann", "true")
    assert len([text for text in company.noted("ann") if "has ended its turn" in text]) == 1
    assert not list(company.session("bob").dir.notify.iterdir())


def test_a_sender_is_told_when_the_receiver_dies_in_its_turn(company: Company) -> None:
    company.new("ann")
    company.new("bob")
    company.send_from("ann", "bob", "Jump.\ndie:", "--notify-on-stop")
    assert company.hears("ann", "[sm] bob has died") == "[sm] bob has died"


def test_a_parent_hears_what_becomes_of_its_child(company: Company) -> None:
    company.new("ann")
    ident = company.run_in("ann", f"{SM} new --provider peer --name kid").split()[1]
    company.wait("kid")
    assert company.session("kid").record.parent == company.session("ann").name
    company.sm("send", "kid", "compact:")
    told = "[sm context] Compaction fired for kid. Context was lost."
    assert company.hears("ann", "Compaction") == told
    company.sm("send", "kid", "leave:", code=None)
    assert company.hears("ann", "kid has ended") == "[sm] kid has ended"
    assert company.session("kid").name == ident
    wait_for(lambda: not is_held(company.session("kid").dir.monitor_lock), "the monitor's end")
    refused = company.sm("send", "kid", "Hello?", code=1)
    assert "'kid' has ended" in refused.stderr
    assert "Hello" not in company.sm("tail", "kid").stdout


def test_an_agent_is_known_whatever_its_environment_says(company: Company) -> None:
    ann, bob = company.new("ann"), company.new("bob")
    assert f"id       {ann}" in company.run_in("ann", f"{SM} whoami")
    unset = company.run_in("ann", f"env -u CLAUDE_SESSION_MANAGER_ID {SM} whoami")
    assert f"id       {ann}" in unset
    detached = company.run_in("ann", f"sh -c '({SM} whoami; echo end) & wait'")
    assert f"id       {ann}" in detached
    posing = company.run_in("ann", f"CLAUDE_SESSION_MANAGER_ID={bob} {SM} send bob hi")
    assert posing.startswith("1\n")
    assert "a session can only act as itself" in posing
    assert not company.noted("bob")
    refused = company.sm("whoami", code=1, env={"CLAUDE_SESSION_MANAGER_ID": ann})
    assert "unset it to act as a person" in refused.stderr


def test_a_session_ends_only_itself_and_its_descendants(company: Company) -> None:
    company.new("ann")
    company.new("bob")
    company.run_in("ann", f"{SM} new --provider mute --name kid")
    company.wait("kid")
    refused = company.run_in("bob", f"{SM} kill kid")
    assert refused.startswith("1\n")
    assert "may end only itself and the sessions that it began" in refused
    assert company.run_in("ann", f"{SM} kill kid").startswith("0\nended s-")
    assert "no session 'kid'" in company.sm("send", "kid", "x", code=2).stderr
    assert company.sm("kill", "bob").stdout.startswith("ended s-")


def test_a_session_can_end_itself_and_leaves_nothing(company: Company) -> None:
    company.new("ann")
    directory = company.session("ann").dir
    company.sm("send", "ann", f"Enough.\nrun: {SM} kill ann")
    wait_for(lambda: not directory.path.exists(), "its end")
    assert company.sm("children").stdout == ""


@pytest.mark.parametrize("point", ["notify:queued", "over:told"])
def test_a_notification_whose_teller_is_killed_comes_once(company: Company, point: str) -> None:
    company.new("ann")
    once = company.folder / "once"
    crash = {"SM_CRASH_AT": point, "SM_CRASH_ONCE": str(once)}
    company.sm("new", "--provider", "peer", "--name", "bob", env=crash)
    company.wait("bob")
    last = "die:" if point == "over:told" else "say: Built."
    company.send_from("ann", "bob", f"Build it.\n{last}", "--notify-on-stop")
    wait_for(once.exists, "the crash")
    company.hears("ann", "[sm] bob has")
    directory = company.session("bob").dir
    wait_for(lambda: not list(directory.notify.iterdir()), "the second try")
    if point == "over:told":
        wait_for(directory.over.exists, "the second try")
    company.run_in("ann", "true")  # whatever else waits for ann comes with it
    company.wait("ann")
    assert len([text for text in company.noted("ann") if "[sm] bob has" in text]) == 1


def test_message_goes_out_as_soon_as_a_late_screen_shows_the_end_of_the_turn(
    company: Company, tmp_path: Path
) -> None:
    """The hook had told the end, so the monitor waited a minute for a hook that never came."""
    drawn, directory = tmp_path / "drawn", company.session(company.new("ann")).dir
    company.sm("send", "ann", f"lag: {drawn}")
    wait_for(lambda: agent_state.read(directory).state is State.IDLE, "the hook of the end")
    assert company.sm("send", "ann", "Next.", code=None).stdout.startswith("queued for ann")
    wait_for(directory.screen.exists, "the monitor to look at the screen")
    assert company.noted("ann") == [f"lag: {drawn}"]
    drawn.touch()
    assert company.hears("ann", "Next.") == "Next."
    wait_for(lambda: not directory.screen.exists(), "the end of the looking")


def test_a_pass_asks_once_before_a_delivery_and_once_after_it(
    root: Root, tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = target(settle(root, tmp_path, "s-1"), CLAUDE).provide(tmux=tmux)
    asked, read = [0], agent_state.read

    def counted(directory: SessionDir) -> AgentState:
        asked[0] += 1
        return read(directory)

    monkeypatch.setattr(agent_state, "read", counted)
    tend_messages(session)
    assert asked == [2]
