"""A session is looked at in each pass, and read on only when its records have grown."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from sm.adapters.agent.claude import CLAUDE
from sm.config.schema import Config
from sm.issues.ticks import Tick
from sm.plugins.cost import entering, growth, waiting
from sm.plugins.cost.ledger import MANY, open_ledger
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.sums import By, read_sums
from sm.plugins.cost.tick import LISTENER
from sm.sessions import registry
from sm.sessions.agent import Agent
from sm.sessions.record import AdHocRecord, IssueRecord
from sm.sessions.session import AdHocSession, IssueSession, Session
from sm.store.files import ensure_private_dir, write_json
from sm.store.paths import Root
from tests.plugins.cost.lines import add_lines, write_answer


@pytest.fixture
def session(root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AdHocSession:
    """One whose first conversation has begun."""
    monkeypatch.setattr(entering, "LATE_S", 0.0)
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
        assert sum(one.requests for one in read_sums(ledger, By.ISSUE)) >= 0
        return dict(rows.fetchall())


def test_it_is_read_on_only_when_it_has_grown(
    session: AdHocSession, tmp_path: Path, sealed: Path
) -> None:
    transcript = tmp_path / "s-one-a.jsonl"
    entering.follow(session)
    assert not growth.has_grown(session)
    add_lines(transcript, [write_answer("r1")])
    assert growth.has_grown(session)
    entering.follow(session)
    assert not growth.has_grown(session)
    subagents = transcript.with_suffix("") / "subagents" / "deeper"
    subagents.mkdir(parents=True)
    add_lines(subagents / "agent-x.jsonl", [write_answer("r2")])
    assert growth.has_grown(session)
    entering.follow(session)
    assert count(sealed) == {"s-one": 2}


def test_a_pass_prices_only_when_many_wait_or_once_a_minute(
    session: AdHocSession, tmp_path: Path
) -> None:
    waiting.note_looked_up(session.root)
    transcript = add_lines(tmp_path / "s-one-a.jsonl", [write_answer("r1")])
    entering.follow(session)
    with open_ledger(find_ledger(session.machine.settings)) as ledger:
        assert [one.unpriced for one in read_sums(ledger, By.ISSUE)] == [1]
        tick = Tick(Config(state_root=session.root.path, projects=(), source=tmp_path), {})
        assert not LISTENER.wants(tick)
        os.utime(session.root.plugins / "cost" / waiting.STAMP, (0, 0))
        assert LISTENER.wants(tick)
        LISTENER.hear(session.root, tick)
        assert [one.unpriced for one in read_sums(ledger, By.ISSUE)] == [0]
        assert not LISTENER.wants(tick)
        add_lines(transcript, [write_answer("r2")])
        entering.follow(session)
        assert [one.unpriced for one in read_sums(ledger, By.ISSUE)] == [1]
        entering.catch_up(ledger, 0.0)
        assert [one.unpriced for one in read_sums(ledger, By.ISSUE)] == [0]
    many = [write_answer(f"q{number}") for number in range(MANY)]
    add_lines(transcript, many)
    entering.follow(session)
    with open_ledger(find_ledger(session.machine.settings)) as ledger:
        assert [one.unpriced for one in read_sums(ledger, By.ISSUE)] == [0]


def test_conversations_between_two_looks_are_read_too(
    session: AdHocSession, tmp_path: Path, sealed: Path
) -> None:
    for number in range(3):
        path = begin_conversation(session, tmp_path, f"c{number}")
        add_lines(path, [write_answer(f"r{number}", sessionId=f"c{number}")])
    entering.follow(session)
    # What was asked for in the background ends after the context was left.
    add_lines(tmp_path / "c0.jsonl", [write_answer("late", sessionId="c0")])
    add_lines(tmp_path / "c2.jsonl", [write_answer("r9", sessionId="c2")])
    entering.follow(session)
    assert count(sealed) == {"s-one": 5}


def test_a_session_that_is_gone_is_read_a_last_time(
    session: AdHocSession, root: Root, tmp_path: Path, sealed: Path
) -> None:
    transcript = add_lines(tmp_path / "s-one-a.jsonl", [write_answer("r1")])
    entering.follow(session)
    add_lines(transcript, [write_answer("r2")])
    session.dir.path.rename(tmp_path / "gone")
    entering.follow(begin(root, tmp_path, "s-two"))
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
        entering.follow(issue)
    with open_ledger(sealed / ".local" / "share" / "sm" / "ledger.db") as ledger:
        query = "SELECT project, issue, session, attempt FROM requests ORDER BY key"
        found = ledger.connection.execute(query).fetchall()
    assert found == [("shop", 7, "dev-shop-7", 1), ("shop", 7, "dev-shop-7", 2)]


def test_a_client_of_which_nothing_is_known_is_left_alone(session: AdHocSession) -> None:
    from sm.adapters.agent.generic import GENERIC

    assert not growth.has_grown(session.provide(profile=GENERIC))
