"""What is due for a context and waits for a person at its terminal."""

from __future__ import annotations

import json

import pytest

from sm.base.refusal import Refusal
from sm.context import monitor, withheld
from sm.context.thresholds import Decision, Due, Flags
from sm.sessions import registry
from sm.sessions.presence_rule import Deed
from sm.sessions.record import AdHocRecord
from sm.sessions.session import AdHocSession
from sm.store.paths import Root


@pytest.fixture
def session(root: Root) -> AdHocSession:
    record = AdHocRecord(
        name="s-1",
        provider="generic",
        cwd=root.path,
        config=None,
        state_root=root.path,
        created_at=1.0,
        command="true",
    )
    return registry.create(root, AdHocSession(record))


def waits(session: AdHocSession) -> list[str]:
    lines = session.root.journal.read_text().splitlines() if session.root.journal.exists() else []
    return [one["reason"] for one in map(json.loads, lines) if one.get("reason")]


def test_what_waits_is_noted_once_until_another_reason_keeps_it(session: AdHocSession) -> None:
    for refusal in (Refusal.DRAFT, Refusal.DRAFT, Refusal.TYPING):
        withheld.note(session, Deed.CLEAR, refusal)
    assert [Refusal.DRAFT.sentence in one for one in waits(session)] == [True, False]
    withheld.forget(session.dir)
    assert withheld.read(session.dir) is None


def test_a_cycle_that_is_due_waits_for_a_person(
    session: AdHocSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    hindrance: list[Refusal | None] = [Refusal.TYPING, None]
    monkeypatch.setattr(monitor, "find_obstacle", lambda _, deed: hindrance.pop(0))
    found = Decision(due=Due(cycle=True), flags=Flags())
    assert not monitor._let_people_go_first(session, found).due
    known = withheld.read(session.dir)
    assert known
    assert (known.deed, known.refusal) == (Deed.CLEAR, Refusal.TYPING)
    assert monitor._let_people_go_first(session, found) is found
    assert withheld.read(session.dir) is None
