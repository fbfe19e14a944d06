"""What `sm doctor` says of prices that differ, and of records that go too soon."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
import yaml
from msgspec import structs

from sm.adapters.agent import own_settings
from sm.adapters.agent.claude import CLAUDE
from sm.config.load import load
from sm.plugins.cost.checks import check_ledger, check_project, check_telemetry
from sm.plugins.cost.ledger import receiver
from sm.plugins.cost.ledger.client_prices import compare
from sm.plugins.cost.ledger.entries import ReadMark, RecordFile, open_ledger
from sm.plugins.cost.ledger.prices import price_pending
from sm.plugins.cost.ledger.records.record import ClientAccount, ClientFigure, LedgerEntry, Tokens
from sm.plugins.cost.settings import find_ledger
from sm.sessions.project import Project
from sm.store import lock
from sm.store.files import ensure_private_dir
from sm.store.paths import Root
from tests.helpers import make_repository, open_project, sm_yaml
from tests.plugins.cost.lines import OWNER

TOKENS = Tokens(input=1000, output=1000)
OURS = 0.03
"""Dollars, by list prices: $5 and $25 for a million."""


@pytest.fixture
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    assert root
    monkeypatch.setattr(own_settings, "MANAGED", tmp_path / "managed.json")
    make_repository(tmp_path)
    return open_project(sm_yaml(tmp_path))


def account(project: Project, folder: Path, price: float, tokens: Tokens = TOKENS) -> None:
    """A request, and what the client says of it at its end; its name of the model is longer."""
    now = time.time()
    context = f"c{price}"
    entry = LedgerEntry(
        key=context, at=now, context=context, model="claude-opus-4-5", tokens=TOKENS
    )
    models = {"claude-opus-4-5-20251101": ClientFigure(tokens, price)}
    said = ClientAccount(context=context, at=now, begun=now - 60, models=models)
    with open_ledger(find_ledger(project.config)) as ledger:
        file = RecordFile(folder / f"{context}.jsonl", "claude", OWNER, ReadMark())
        ledger.enter(file, ReadMark(9), [entry, said])
        price_pending(ledger)


def list_warnings(project: Project) -> list[str]:
    return [one.what for one in check_ledger(project.config) if one.level == "warn"]


def test_a_price_that_differs_by_more_than_two_percent_is_named(
    project: Project, tmp_path: Path
) -> None:
    account(project, tmp_path, OURS * 1.019)
    assert list_warnings(project) == []
    account(project, tmp_path, OURS * 1.05)
    (told,) = list_warnings(project)
    assert told.startswith("the same requests to claude-opus-4-5 cost $0.06 by the agent CLI, and")


def test_sums_of_other_requests_are_not_compared(project: Project, tmp_path: Path) -> None:
    account(project, tmp_path, OURS * 2, Tokens(input=2000, output=1000))
    with open_ledger(find_ledger(project.config)) as ledger:
        assert compare(ledger, 0.0) == []


def test_what_has_no_price_on_one_side_is_not_compared(project: Project, tmp_path: Path) -> None:
    account(project, tmp_path, 0.0)
    account(project, tmp_path, OURS * 2)
    with open_ledger(find_ledger(project.config)) as ledger:
        assert [(one.ours, one.own) for one in compare(ledger, 0.0)] == [(OURS, OURS * 2)]
        assert compare(ledger, time.time() + 60) == [], "it is older"
        ledger.connection.execute("UPDATE requests SET price = NULL")
        ledger.connection.execute("INSERT OR IGNORE INTO to_compare SELECT context FROM requests")
        assert compare(ledger, 0.0) == []


def test_a_sum_of_which_a_part_has_no_price_yet_is_not_compared(
    project: Project, tmp_path: Path
) -> None:
    now, model = time.time(), "claude-opus-4-5"
    first = LedgerEntry(key="r1", at=now, context="c", model=model, tokens=TOKENS)
    both = ClientFigure(Tokens(input=2000, output=2000), OURS * 2)
    said = ClientAccount(context="c", at=now, begun=now - 60, models={model: both})
    with open_ledger(find_ledger(project.config)) as ledger:
        file = RecordFile(tmp_path / "c.jsonl", "claude", OWNER, ReadMark())
        ledger.enter(file, ReadMark(9), [first])
        price_pending(ledger)
        ledger.enter(file, ReadMark(18), [structs.replace(first, key="r2"), said])
        assert compare(ledger, 0.0) == []
        price_pending(ledger)
        assert [one.ours for one in compare(ledger, 0.0)] == [OURS * 2]


def test_records_that_go_too_soon_are_named(project: Project, sealed: Path, tmp_path: Path) -> None:
    assert list(check_project(project)) == []
    own = sealed / ".claude" / "settings.json"
    own.parent.mkdir(exist_ok=True)
    for days, is_named in ((0, True), (6, True), (7, False), (365, False), (True, False)):
        own.write_text(json.dumps({"cleanupPeriodDays": days}))
        assert bool(list(check_project(project))) == is_named, days
    (tmp_path / "managed.json").write_text('{"cleanupPeriodDays": 1}')
    (found,) = check_project(project)
    assert found.what.startswith(f"'cleanupPeriodDays' is 1 in '{tmp_path / 'managed.json'}'")


def test_the_doctor_says_of_telemetry_what_matters(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_settings, "MANAGED", tmp_path / "managed.json")
    make_repository(tmp_path)

    def check(*, telemetry: bool = True, **more: object) -> list[tuple[str, str]]:
        path, cost = sm_yaml(tmp_path, **more), {"telemetry": telemetry}
        path.write_text(json.dumps({"cost": cost, "projects": [yaml.safe_load(path.read_text())]}))
        config = load(path, os.environ, tmp_path)
        project = Project(config, config.projects[0])
        project.__dict__["profile"] = CLAUDE
        return [(str(one.level), one.what) for one in check_telemetry(project)]

    assert check(telemetry=False) == []
    without = "what a compaction used is known once its context has ended"
    off = ("ok", f"telemetry is off (cost.telemetry): {without}")
    assert check(telemetry=False, budget={"issue": "$1"}) == [off]
    begins = ("ok", "telemetry is on: its receiver is started with the next agent")
    assert check() == [begins]
    agent = {"command": "claude", "env": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://ours"}}
    [(level, told)] = check(agent=agent)
    assert (level, told) == (
        "ok",
        f"telemetry goes where 'OTEL_EXPORTER_OTLP_ENDPOINT' of your own says, so {without}",
    )
    folder = root.plugins / "cost"
    ensure_private_dir(folder)
    (folder / "telemetry.json").write_bytes(b'{"port":7,"secret":"secret"}')
    assert check() == [begins], "no agent needs it"
    monkeypatch.setattr(receiver, "is_needed", lambda _: True)
    assert check()[0][0] == "warn"
    with lock.hold(folder / "telemetry.lock"):
        assert check() == [("ok", "telemetry is on: its receiver listens on port 7")]
