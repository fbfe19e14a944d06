"""What is due for a context and waits for a person at its terminal."""

from __future__ import annotations

import json
import time

import pytest

from sm.base.refusal import Refusal
from sm.context import monitor, progress
from sm.context.thresholds import DueAction, Flags, ThresholdDecision
from sm.sessions import registry
from sm.sessions.presence_rule import NOBODY, SOON_S, Disturbance, Hands
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
        progress.note_withheld(session, Disturbance.CLEAR, refusal)
    assert [Refusal.DRAFT.sentence in one for one in waits(session)] == [True, False]
    progress.forget_withheld(session.dir)
    assert progress.read_withheld(session.dir) is None


def test_a_cycle_that_is_due_waits_for_a_person(
    session: AdHocSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    hands = [Hands(typed_at=time.time(), attached=True), NOBODY]
    monkeypatch.setattr(monitor, "observe_hands", lambda _: hands.pop(0))
    found = ThresholdDecision(due=DueAction(cycle=True), flags=Flags())
    later = monitor._let_people_go_first(session, found)
    assert not later.due
    assert later.again_at <= time.time() + SOON_S
    known = progress.read_withheld(session.dir)
    assert known
    assert (known.deed, known.refusal) == (Disturbance.CLEAR, Refusal.TYPING)
    assert monitor._let_people_go_first(session, found) is found
    assert progress.read_withheld(session.dir) is None
