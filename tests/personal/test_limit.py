"""A limit of a session without an issue: interrupted, told of once, and let go on."""

from __future__ import annotations

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
from sm.config import cache, usable
from sm.config.load import load_any
from sm.issues import meters
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.messages import queue
from sm.messages.queue import MessageFolder
from sm.messages.turn_stop import StopResult
from sm.personal import limit
from sm.personal.reactor import run_pass
from sm.sessions import spending_hold
from sm.sessions.session import AdHocSession
from sm.store import journal
from sm.store.events import PersonTold
from sm.store.paths import Root
from tests.residents import settle

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

    monkeypatch.setattr(limit, "stop_all", stop)
    monkeypatch.setattr(meters, "read_allowance", lambda _: OVER)
    assert limit.tend(ann) < time.time() + 2, "a person is typing"
    assert spending_hold.is_set(ann.dir)
    limit.tend(ann)
    for _ in range(2):
        limit.tend(ann)
    assert asked == said, "it is at rest by then"
    told = [one for one in journal.read(ann.root.journal) if isinstance(one, PersonTold)]
    assert [one.text for one in told] == ["may spend no more: $5.00 of $5.00"]
    monkeypatch.setattr(meters, "read_allowance", lambda _: None)
    for _ in range(2):
        limit.tend(ann)
    assert not spending_hold.is_set(ann.dir)
    [word] = queue.list_messages(ann.dir, MessageFolder.WAITING)
    assert word.text == limit.GO_ON


def test_it_holds_while_the_configuration_cannot_be_used(
    ann: AdHocSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sm.yaml"
    path.write_text("profiles: {claude: {glyph: '#'}}\n")
    os.utime(path, (time.time() - 3600,) * 2)
    session = AdHocSession(structs.replace(ann.record, config=path))
    monkeypatch.setattr(limit, "stop_all", lambda *_: StopResult.STOPPED)
    monkeypatch.setattr(meters, "read_allowance", lambda _: OVER)
    config = load_any(path, os.environ, tmp_path)
    path.write_text("profiles: [\n")
    run_pass(session)
    assert spending_hold.is_set(session.dir)
    assert session.dir.next.exists()
    cache.locate(config.source, usable.SUFFIX).unlink()
    with pytest.raises(UsageError, match="cannot parse"):
        run_pass(AdHocSession(session.record))
