from __future__ import annotations

from pathlib import Path

import pytest

from sm.base import plugin
from sm.base.errors import StateError
from sm.base.plugin import Plugin, Registry
from sm.issues import meters
from sm.issues.meters import Meter
from sm.issues.rules.allowance import Allowance, LimitStage
from sm.sessions.project import Project
from sm.sessions.session import IssueSession, Session
from sm.store.paths import Root
from sm.testing.channel import make_session
from tests.e2e.stage import make_stage

NEARLY = Allowance(LimitStage.NEAR, "day", "$8.20 of $10.00 today")


def _read(_: Session) -> Allowance | None:
    return NEARLY


def _admit(_: Project) -> Allowance | None:
    return None


def _fail(_: object) -> Allowance | None:
    raise StateError("the ledger cannot be read")


GOOD, BAD = Meter(_read, _admit), Meter(_fail, _fail)
PLUGINS = {
    "good": Plugin(meters={"good": f"{__name__}:GOOD"}),
    "bad": Plugin(meters={"bad": f"{__name__}:BAD"}),
    "lost": Plugin(meters={"lost": "sm.nowhere:METER"}),
}


@pytest.fixture
def session(tmp_path: Path, root: Root) -> IssueSession:
    return make_session(make_stage(tmp_path, auto=False).project)


def _install(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setitem(globals(), f"plugin_{name}", PLUGINS[name])
    places = [(name, f"{__name__}:plugin_{name}") for name in names]
    monkeypatch.setattr(plugin, "_registry", Registry(lambda: places))


def test_nothing_limits_a_session_without_meters(
    session: IssueSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(monkeypatch)
    assert meters.read_allowance(session) is None
    assert meters.find_objection(session.project) is None


def test_a_meter_is_asked(session: IssueSession, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, "good")
    assert meters.read_allowance(session) == NEARLY
    assert meters.find_objection(session.project) is None
    assert meters.list_failures(session.project) == []


@pytest.mark.parametrize(
    ("name", "why"), [("bad", "the ledger cannot be read"), ("lost", "No module named")]
)
def test_a_meter_that_cannot_tell_holds_everything_and_is_named(
    session: IssueSession, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    _install(monkeypatch, "good", name)
    held = meters.read_allowance(session)
    assert held
    assert held == meters.find_objection(session.project)
    assert held.stage is LimitStage.BLIND
    assert f"plugin '{name}' cannot tell what may be spent: " in held.shown
    assert why in held.shown
    assert meters.list_failures(session.project) == [held.shown]
