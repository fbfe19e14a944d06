"""A session is looked at in each pass, and read on only when its records have grown."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.adapters.procfs import Process
from sm.config.schema import Config
from sm.issues.ticks import Tick
from sm.plugins.cost import follower
from sm.plugins.cost.ledger import intake, progress
from sm.plugins.cost.ledger.entries import MANY, open_ledger
from sm.plugins.cost.ledger.sums import SumGroup, read_sums
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.tick import LISTENER
from sm.sessions import agent, registry
from sm.sessions.agent import Agent
from sm.sessions.record import AdHocRecord, IssueRecord
from sm.sessions.session import AdHocSession, IssueSession, Session
from sm.store.files import ensure_private_dir, write_json
from sm.store.paths import Root
from tests.plugins.cost.lines import add_lines, write_answer


@pytest.fixture
def session(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdHocSession:
    """One whose first conversation has begun."""
    monkeypatch.setattr(intake, "LATE_S", 0.0)
    ensure_private_dir(root.plugins / "cost")
    return begin(root, tmp_path, "s-one")


def begin(root: Root, folder: Path, name: str) -> AdHocSession:
    record = AdHocRecord(
        name=name,
        provider=CLAUDE.name,
        cwd=folder,
        config=None,
        state_root=root.path,
        created_at=1795860000.0,
        command="claude",
    )
    session = registry.create(root, AdHocSession(record)).provide(profile=CLAUDE)
    begin_conversation(session, folder, f"{name}-a")
    return session


def begin_conversation(session: Session, folder: Path, ident: str) -> Path:
    """What the hook of a new context writes; returns the transcript."""
    path = folder / f"{ident}.jsonl"
    start = {"session_id": ident, "source": "startup", "transcript_path": str(path)}
    session.dir.context.write_text(json.dumps(start))
    with session.dir.events.open("a") as events:
        events.write(f"{time.time():.6f} SessionStart {ident} startup\n")
    return path


def count(sealed: Path) -> dict[str, int]:
    with open_ledger(sealed / ".local" / "share" / "sm" / "ledger.db") as ledger:
        rows = ledger.connection.execute("SELECT session, count(*) FROM requests GROUP BY session")
        assert sum(one.requests for one in read_sums(ledger, SumGroup.ISSUE)) >= 0
        return dict(rows.fetchall())


def test_it_is_read_on_only_when_it_has_grown(
    session: AdHocSession, tmp_path: Path, sealed: Path
) -> None:
    transcript = tmp_path / "s-one-a.jsonl"
    follower.follow(session)
    assert not progress.has_grown(session)
    add_lines(transcript, [write_answer("r1")])
    assert progress.has_grown(session)
    follower.follow(session)
    assert not progress.has_grown(session)
    subagents = transcript.with_suffix("") / "subagents" / "deeper"
    subagents.mkdir(parents=True)
    add_lines(subagents / "agent-x.jsonl", [write_answer("r2")])
    assert progress.has_grown(session)
    follower.follow(session)
    assert count(sealed) == {"s-one": 2}


def test_a_pass_prices_only_when_many_wait_or_once_a_minute(
    session: AdHocSession, tmp_path: Path
) -> None:
    progress.note_pricing(session.root)
    transcript = add_lines(tmp_path / "s-one-a.jsonl", [write_answer("r1")])
    follower.follow(session)
    with open_ledger(find_ledger(session.machine.settings)) as ledger:
        assert [one.unpriced for one in read_sums(ledger, SumGroup.ISSUE)] == [1]
        tick = Tick(Config(state_root=session.root.path, projects=(), source=tmp_path), {})
        assert not LISTENER.wants(tick)
        os.utime(session.root.plugins / "cost" / progress.STAMP, (0, 0))
        assert LISTENER.wants(tick)
        LISTENER.hear(session.root, tick)
        assert [one.unpriced for one in read_sums(ledger, SumGroup.ISSUE)] == [0]
        assert not LISTENER.wants(tick)
        add_lines(transcript, [write_answer("r2")])
        follower.follow(session)
        assert [one.unpriced for one in read_sums(ledger, SumGroup.ISSUE)] == [1]
        intake.catch_up(ledger, 0.0)
        assert [one.unpriced for one in read_sums(ledger, SumGroup.ISSUE)] == [0]
    many = [write_answer(f"q{number}") for number in range(MANY)]
    add_lines(transcript, many)
    follower.follow(session)
    with open_ledger(find_ledger(session.machine.settings)) as ledger:
        assert [one.unpriced for one in read_sums(ledger, SumGroup.ISSUE)] == [0]


def test_conversations_between_two_looks_are_read_too(
    session: AdHocSession, tmp_path: Path, sealed: Path
) -> None:
    for number in range(3):
        path = begin_conversation(session, tmp_path, f"c{number}")
        add_lines(path, [write_answer(f"r{number}", sessionId=f"c{number}")])
    follower.follow(session)
    # What was asked for in the background ends after the context was left.
    add_lines(tmp_path / "c0.jsonl", [write_answer("late", sessionId="c0")])
    add_lines(tmp_path / "c2.jsonl", [write_answer("r9", sessionId="c2")])
    follower.follow(session)
    assert count(sealed) == {"s-one": 5}


def test_a_session_that_is_gone_is_read_a_last_time(
    session: AdHocSession, root: Root, tmp_path: Path, sealed: Path
) -> None:
    transcript = add_lines(tmp_path / "s-one-a.jsonl", [write_answer("r1")])
    follower.follow(session)
    add_lines(transcript, [write_answer("r2")])
    session.dir.path.rename(tmp_path / "gone")
    follower.follow(begin(root, tmp_path, "s-two"))
    assert count(sealed) == {"s-one": 2}
    assert [one.name for one in (root.plugins / "cost").glob("*.read")] == ["s-two.read"]


def test_an_issue_keeps_its_requests_over_launches(
    session: AdHocSession, root: Root, tmp_path: Path, sealed: Path
) -> None:
    assert session
    record = IssueRecord(
        name="dev-shop-7",
        provider=CLAUDE.name,
        cwd=tmp_path,
        config=None,
        state_root=root.path,
        created_at=1795860000.0,
        project="shop",
        issue=7,
        title="t",
        branch="fix/7",
        base="main",
        remote="origin",
        repo=tmp_path,
    )
    issue = registry.create(root, IssueSession(record)).provide(profile=CLAUDE)
    for generation in (1, 2):
        path = begin_conversation(issue, tmp_path, f"c{generation}")
        add_lines(path, [write_answer(f"r{generation}")])
        known = Agent(issue.name, 1, 1, "%1", record.created_at, generation)
        write_json(issue.dir.agent, known)
        follower.follow(issue)
    with open_ledger(sealed / ".local" / "share" / "sm" / "ledger.db") as ledger:
        query = "SELECT project, issue, session, attempt FROM requests ORDER BY key"
        found = ledger.connection.execute(query).fetchall()
    assert found == [("shop", 7, "dev-shop-7", 1), ("shop", 7, "dev-shop-7", 2)]


def read_unknown(sealed: Path) -> list[str]:
    """The kinds of entries of which no more is known than that they were made."""
    with open_ledger(sealed / ".local" / "share" / "sm" / "ledger.db") as ledger:
        query = "SELECT key FROM requests WHERE certainty = 2 ORDER BY at"
        return [key.partition(":")[0] for (key,) in ledger.connection.execute(query)]


def hear(session: Session, state: str, *events: str, context: str = "s-one-a") -> None:
    """What hooks write: the state, and a line for each event."""
    session.dir.state.write_text(f"{state} {time.time():.6f} {context} p1\n")
    with session.dir.events.open("a") as file:
        file.writelines(f"{time.time():.6f} {event} {context} -\n" for event in events)


def test_a_record_that_was_removed_is_missed_and_an_unknown_once(
    session: AdHocSession, tmp_path: Path, sealed: Path
) -> None:
    transcript = tmp_path / "s-one-a.jsonl"
    follower.follow(session)
    assert progress.find_fault(session) is progress.RecordFault.NONE, "it is not there yet"
    add_lines(transcript, [write_answer("r1")])
    follower.follow(session)
    transcript.unlink()
    os.mkfifo(transcript)
    assert progress.has_grown(session)
    for _ in range(2):
        follower.follow(session)
        assert not progress.has_grown(session)
        assert progress.find_fault(session) is progress.RecordFault.MISSING
        assert read_unknown(sealed) == ["lost"]
    progress.find_note(session).unlink()  # the ledger knows that it was there, too
    follower.follow(session)
    assert progress.find_fault(session) is progress.RecordFault.MISSING or read_unknown(sealed) == [
        "lost"
    ]
    transcript.unlink()
    add_lines(transcript, [write_answer("r1"), write_answer("r2")])
    follower.follow(session)
    assert progress.find_fault(session) is progress.RecordFault.NONE
    assert count(sealed) == {"s-one": 3}


def test_a_record_that_does_not_grow_while_its_agent_works_is_an_unknown(
    session: AdHocSession, tmp_path: Path, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = add_lines(tmp_path / "s-one-a.jsonl", [write_answer("r1")])
    hear(session, "busy", "UserPromptSubmit")
    follower.follow(session)
    os.utime(transcript, (0, 0))
    assert progress.find_fault(session) is progress.RecordFault.NONE, "it may be late"
    monkeypatch.setattr(progress, "SILENT_S", 0.0)
    assert progress.find_fault(session) is progress.RecordFault.SILENT
    assert progress.has_grown(session)
    follower.follow(session)
    assert not progress.has_grown(session)
    assert read_unknown(sealed) == ["silent"]
    add_lines(transcript, [write_answer("r2")])
    assert progress.find_fault(session) is progress.RecordFault.NONE
    follower.follow(session)
    hear(session, "idle", "Stop")
    os.utime(transcript, (0, 0))
    assert progress.find_fault(session) is progress.RecordFault.NONE, "it has nothing to say"


@pytest.fixture
def launched(session: AdHocSession, monkeypatch: pytest.MonkeyPatch) -> AdHocSession:
    """The same, whose client is gone."""
    monkeypatch.setattr(agent, "read_process", lambda _: Process(2**22 + 1, 1))
    return session


def test_a_client_that_was_killed_at_work_leaves_an_unknown_though_nothing_tells_of_it(
    launched: AdHocSession, tmp_path: Path, sealed: Path
) -> None:
    add_lines(tmp_path / "s-one-a.jsonl", [write_answer("r1")])
    hear(launched, "idle", "Stop")
    follower.follow(launched)
    assert read_unknown(sealed) == []
    hear(launched, "busy", "UserPromptSubmit")
    assert progress.has_grown(launched)
    for _ in range(2):
        follower.follow(launched)
        assert not progress.has_grown(launched)
        assert read_unknown(sealed) == ["killed"]


def test_a_kill_is_no_second_unknown_of_a_request_that_was_written_down(
    launched: AdHocSession, tmp_path: Path, sealed: Path
) -> None:
    hear(launched, "busy", "UserPromptSubmit")
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    begun = {"type": "api-request", "timestamp": moment, "id": "b1", "sessionId": "s-one-a"}
    add_lines(tmp_path / "s-one-a.jsonl", [begun])
    follower.follow(launched)
    assert read_unknown(sealed) == ["begun"]


@pytest.mark.parametrize(
    ("events", "killed"),
    [
        ("startup prompt stop", ""),
        ("startup prompt", "last"),
        ("startup prompt stop prompt resume", "4"),
        ("startup prompt resume prompt stop", "2"),
        ("startup prompt tool stop end startup", ""),
        ("startup prompt end resume", "2"),
        ("startup prompt stop tool", "last"),
        ("startup prompt clear stop", ""),
        ("startup prompt compact prompt fail", ""),
        ("startup", ""),
    ],
)
def test_a_process_that_ended_in_a_turn_was_killed(events: str, killed: str) -> None:
    names = {
        "prompt": ("UserPromptSubmit", "-"),
        "tool": ("PostToolUse", "-"),
        "stop": ("Stop", "-"),
        "fail": ("StopFailure", "-"),
        "end": ("SessionEnd", "other"),
        "clear": ("SessionEnd", "clear"),
    }
    lines = [
        (str(at), *_split(names.get(word, ("SessionStart", word))))
        for at, word in enumerate(events.split(), 1)
    ]
    found = [at for _, _, at in intake.list_kills(lines, was_killed=True)]
    last = float(len(lines))
    assert found == ([] if not killed else [last if killed == "last" else float(killed)])


def _split(event: tuple[str, str]) -> tuple[str, str, str]:
    return event[0], "c1", event[1]


def test_a_client_of_which_nothing_is_known_is_left_alone(session: AdHocSession) -> None:
    from sm.adapters.agent.profiles import GENERIC

    assert not progress.has_grown(session.provide(profile=GENERIC))
