"""Holds of sessions without an issue: a fault of the account, a limit; they go on afterwards."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.base.act import run
from sm.base.errors import UsageError
from sm.base.refusal import Refusal
from sm.config import cache, read
from sm.config.load import load_any
from sm.issues import meters
from sm.issues.act import brake
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.messages import queue, screen_state, wait
from sm.messages.queue import MessageFolder
from sm.messages.turn_stop import StopResult
from sm.messages.wait import AwaitedEvent
from sm.personal import holds
from sm.personal.reactor import run_pass
from sm.sessions import account_faults, agent_state, spending_hold, turn
from sm.sessions.account_fault import AccountCourse
from sm.sessions.session import AdHocSession
from sm.store import journal
from sm.store.events import PersonTold
from sm.store.files import ensure_private_dir, write_atomic, write_json
from sm.store.paths import Root
from sm.views.needs import list_own_needs
from tests.residents import settle

NAMES = ("ann", "bob", "cy")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def team(root: Root, tmp_path: Path, home: Path) -> list[AdHocSession]:
    made = []
    for name in NAMES:
        session = settle(root, tmp_path, name, provider="claude").provide(profile=CLAUDE)
        write_atomic(session.dir.launch_env, f"HOME={home}\0")
        is_at(session, "busy", time.time() - 60)
        made.append(session)
    return made


def is_at(session: AdHocSession, state: str, at: float, prompt: str = "p1") -> None:
    write_atomic(session.dir.state, f"{state} {at:.6f} c1 {prompt}\n")


def happened(session: AdHocSession, *events: str) -> None:
    at = time.time()
    with session.dir.events.open("a") as file:
        file.writelines(f"{at:.6f} {event} c1 -\n" for event in events)
    # The kernel's clock for files lies some milliseconds behind.
    os.utime(session.dir.events, (at, at))


def fails(session: AdHocSession, error: str = "authentication_failed", prompt: str = "p1") -> None:
    said = {"session_id": "c1", "prompt_id": prompt, "error": error}
    write_atomic(session.dir.failure, json.dumps(said | {"last_assistant_message": "Log in."}))
    is_at(session, "limited", time.time(), prompt)


def tend(session: AdHocSession, started: list[tuple[str, str, int]] | None = None) -> float:
    made = started if started is not None else []
    return holds.tend_account(session, lambda *of_start: made.append(of_start))


def told(session: AdHocSession) -> list[str]:
    return [one.text for one in queue.list_messages(session.dir, MessageFolder.WAITING)]


def test_they_rest_with_one_need_and_go_on_one_after_the_other(
    team: list[AdHocSession], home: Path, root: Root
) -> None:
    for session in team:
        fails(session)
        assert tend(session) > time.time()
    [need] = list_own_needs(root)
    assert (need.kind, need.command, need.session) == ("login", "sm attach ann", "")
    assert "3 sessions rest" in need.text
    assert not any(map(told, team))
    (home / ".claude" / ".credentials.json").write_text("{}")
    for session in team:
        tend(session)
    assert [told(session) for session in team] == [[holds.AFTER_FAULT], [], []]
    is_at(team[0], "busy", time.time(), "p2")
    happened(team[0], "UserPromptSubmit", "Stop")
    is_at(team[0], "idle", time.time(), "p2")
    for session in team:
        tend(session)
    assert list_own_needs(root) == []
    assert [bool(told(session)) for session in team] == [True, True, False]
    word = [one for one in journal.read(root.journal) if isinstance(one, PersonTold)]
    assert len(word) == 1
    assert word[0].session == "ann"
    assert word[0].text == (
        "waits for the login of Claude Code (~/.claude): no access to the API (“Log in.”). "
        "All sessions of that account rest, and go on by themselves. sm attach ann"
    )


def test_a_session_of_another_account_is_not_concerned(
    team: list[AdHocSession], home: Path
) -> None:
    other = team[2]
    write_atomic(other.dir.launch_env, f"HOME={home}\0ANTHROPIC_API_KEY=another\0")
    fails(team[0])
    fails(other, "rate_limit")
    for session in (team[0], other):
        tend(session)
    found = [known for _, known in account_faults.list_faults(other.root)]
    assert sorted(one.name for one in found) == [
        "Claude Code (ANTHROPIC_API_KEY)",
        "Claude Code (~/.claude)",
    ]
    assert all(len(one.sessions) == 1 for one in found)
    assert "another" not in "".join(
        path.read_text() for path in other.root.account_faults.iterdir()
    )


def test_a_client_with_a_stale_login_is_started_again_with_its_conversation(
    team: list[AdHocSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob, _ = team
    fails(ann)
    tend(ann)
    happened(bob, "UserPromptSubmit", "Stop")
    tend(ann)
    assert told(ann) == [holds.AFTER_FAULT]
    fails(ann, prompt="p2")
    later(ann)
    started: list[tuple[str, str, int]] = []
    hindered: list[Refusal | None] = [Refusal.TYPING, None]
    monkeypatch.setattr(holds, "find_obstacle", lambda *_: hindered.pop(0))
    tend(ann, started)
    assert started == [], "a person types there"
    tend(ann, started)
    assert started == [(holds.AFTER_FAULT, "c1", 1)]


def test_a_client_that_begins_at_its_menu_is_started_again_with_its_first_prompt(
    team: list[AdHocSession], home: Path, root: Root
) -> None:
    ann, bob, cy = team
    is_at(cy, "idle", time.time() - 60)
    for session, prompt in ((ann, "Mend the roof."), (bob, "")):
        if prompt:
            write_atomic(session.dir.prompt, prompt)
            write_atomic(session.dir.opening, "id\n\n")
        write_atomic(session.dir.state, f"starting {time.time():.6f} - -\n")
        screen_state.note_menu(session, agent_state.read(session.dir), "Select login method:")
        tend(session)
    [need] = list_own_needs(root)
    assert "“Select login method:”" in need.text
    assert "2 sessions rest" in need.text
    (home / ".claude" / ".credentials.json").write_text("{}")
    started: list[tuple[str, str, int]] = []
    tend(ann, started)
    tend(bob, started)
    assert started == [("Mend the roof.", "", 1)]
    is_at(ann, "busy", time.time(), "p2")
    happened(ann, "UserPromptSubmit", "Stop")
    is_at(ann, "idle", time.time(), "p2")
    tend(ann, started)
    tend(bob, started)
    assert started[1:] == [("", "", 1)]
    assert not any(map(told, team))


def test_a_turn_that_a_fault_of_the_account_has_cut_short_is_not_over_until_it_has_gone_on(
    team: list[AdHocSession], home: Path
) -> None:
    ann = team[0]
    write_atomic(ensure_private_dir(ann.dir.accepted) / "m1", "")
    fails(ann, "rate_limit")
    tend(ann)
    assert wait.await_turn(ann, "m1", 0.2) is None
    assert wait.await_event(ann, AwaitedEvent.IDLE, 0.7) is None
    assert wait.find_rest(ann) == "rests (usage limit), and goes on by itself"
    is_at(ann, "busy", time.time(), "p2")
    happened(ann, "UserPromptSubmit", "Stop")
    said = {"session_id": "c1", "prompt_id": "p2", "last_assistant_message": "It is done."}
    write_atomic(ann.dir.stop_payload, json.dumps(said))
    is_at(ann, "idle", time.time(), "p2")
    assert wait.await_turn(ann, "m1", 0.2) == "It is done."
    assert wait.await_event(ann, AwaitedEvent.IDLE, 5.0)


def test_a_turn_with_a_request_that_the_api_refuses_is_over(team: list[AdHocSession]) -> None:
    ann = team[0]
    write_atomic(ensure_private_dir(ann.dir.accepted) / "m1", "")
    fails(ann, "model_not_found")
    tend(ann)
    assert wait.await_turn(ann, "m1", 0.2) == "Log in."
    assert wait.await_event(ann, AwaitedEvent.IDLE, 5.0)
    assert wait.find_rest(ann) == ""


def test_a_failure_that_no_pass_has_noted_lets_it_rest_first(team: list[AdHocSession]) -> None:
    ann, bob, _ = team
    fails(ann)
    tend(ann)
    happened(bob, "UserPromptSubmit", "Stop")
    tend(ann)
    fails(ann, prompt="p2")
    failure = turn.read(ann.dir, agent_state.read(ann.dir)).failure
    standing = account_faults.read_standing(ann, failure, gone=False)
    assert standing
    assert (standing.way, standing.tries_now) == (AccountCourse.REST, False)


def later(session: AdHocSession) -> None:
    """Let it be its turn."""
    root = session.root
    [(ident, known)] = account_faults.list_faults(root)
    write_json(root.account_faults / ident, structs.replace(known, next_at=0.0))


def test_who_tells_of_it_may_end_and_nobody_is_told_twice(
    team: list[AdHocSession], root: Root
) -> None:
    for session in team:
        fails(session)
        tend(session)
    tend(team[0])
    write_atomic(team[0].dir.over, "has ended\n")
    for session in team[1:]:
        tend(session)
    [need] = list_own_needs(root)
    assert need.command == "sm attach bob"
    word = [one for one in journal.read(root.journal) if isinstance(one, PersonTold)]
    assert [one.session for one in word] == ["ann"]


def test_the_fault_is_over_with_the_last_session_that_it_concerns(
    team: list[AdHocSession], root: Root
) -> None:
    fails(team[0])
    tend(team[0])
    assert len(account_faults.list_faults(root)) == 1
    write_atomic(team[0].dir.over, "has ended\n")
    assert account_faults.list_faults(root) == []
    assert list_own_needs(root) == []


# A limit


OVER = Allowance(LimitStage.OVER, "session:5", "$5.00 of $5.00", None, run("sm budget raise ann 5"))


@pytest.fixture
def ann(root: Root, tmp_path: Path) -> AdHocSession:
    session = settle(root, tmp_path, "s-000000aa", provider="claude").provide(profile=CLAUDE)
    session.dir.state.write_text(f"busy {time.time():.6f} context prompt\n")
    session.dir.state.chmod(0o600)
    return session


def test_it_is_interrupted_a_person_is_told_once_and_it_goes_on(
    ann: AdHocSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[StopResult | Refusal] = [Refusal.CHANGED, StopResult.STOPPED]
    asked: list[StopResult | Refusal] = []

    def stop(_session: object, _by: object, _people: object, note: Callable[[], None]) -> object:
        note()
        asked.append(said[len(asked)])
        return asked[-1]

    monkeypatch.setattr(brake, "stop_all", stop)
    monkeypatch.setattr(meters, "read_allowance", lambda _: OVER)
    assert holds.tend_limit(ann) < time.time() + 2, "a person is typing"
    assert spending_hold.is_set(ann.dir)
    holds.tend_limit(ann)
    for _ in range(2):
        holds.tend_limit(ann)
    assert asked == said, "it is at rest by then"
    told = [one for one in journal.read(ann.root.journal) if isinstance(one, PersonTold)]
    assert [one.text for one in told] == ["may spend no more: $5.00 of $5.00"]
    monkeypatch.setattr(meters, "read_allowance", lambda _: None)
    for _ in range(2):
        holds.tend_limit(ann)
    assert not spending_hold.is_set(ann.dir)
    [word] = queue.list_messages(ann.dir, MessageFolder.WAITING)
    assert word.text == holds.AFTER_LIMIT


def test_it_holds_while_the_configuration_cannot_be_used(
    ann: AdHocSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sm.yaml"
    path.write_text("profiles: {claude: {glyph: '#'}}\n")
    os.utime(path, (time.time() - 3600,) * 2)
    session = AdHocSession(structs.replace(ann.record, config=path))
    monkeypatch.setattr(brake, "stop_all", lambda *_: StopResult.STOPPED)
    monkeypatch.setattr(meters, "read_allowance", lambda _: OVER)
    config = load_any(path, os.environ, tmp_path)
    path.write_text("profiles: [\n")
    run_pass(session)
    assert spending_hold.is_set(session.dir)
    assert session.dir.next.exists()
    cache.locate(config.source, read.USABLE).unlink()
    with pytest.raises(UsageError, match="cannot parse"):
        run_pass(AdHocSession(session.record))
