"""`sm health`: what a person, a program and cron see of the rotations that there were."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.__main__ import run
from sm.context import health_log
from sm.context.rotation import Cause, RotationStage, begin
from sm.sessions.project import Project
from sm.sessions.registry import forget
from sm.sessions.session import AdHocSession
from sm.store.paths import Root
from tests.helpers import open_project, put_session, sm_yaml
from tests.residents import settle

NOW = 1_767_322_985.0
"""2026-01-02 03:03:05 UTC."""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> Project:
    path = sm_yaml(tmp_path)
    monkeypatch.setenv("SM_CONFIG", str(path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return open_project(path)


@pytest.fixture
def ann(root: Root, tmp_path: Path) -> AdHocSession:
    return settle(root, tmp_path, "s-000000aa")


def note(
    root: Root,
    session: str,
    ident: str,
    at: float = NOW,
    *,
    percent: float | None = 86.6,
    error: str = "",
) -> None:
    """The record of a rotation that took 72 seconds."""
    begun = begin(ident, Cause.CYCLE, at - 72, "old")
    steps = (
        (RotationStage.REQUEST, at - 72),
        (RotationStage.DOCUMENT, at - 71.6),
        (RotationStage.CLEAR, at - 5),
    )
    record = structs.replace(begun, percent=percent, document="/x/handoff-1.md", steps=steps)
    project = "harb" if session.startswith("dev-") else ""
    entry = health_log.make_entry(record, at, project=project, session=session, error=error)
    assert health_log.append(root, entry)


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert run(["health", *args]) == code
    return capsys.readouterr().out


def test_without_a_record_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health"]) == 0
    assert capsys.readouterr() == ("", "none so far\n")
    assert run(["health", "--check"]) == 0
    assert capsys.readouterr().err == "nothing to see to\n"
    assert json.loads(said(capsys, "--json")) == []


def test_the_table_has_a_line_for_each_the_newest_last(
    root: Root, project: Project, ann: AdHocSession, capsys: pytest.CaptureFixture[str]
) -> None:
    put_session(project, 7)
    note(root, "dev-harb-7", "r1")
    note(root, ann.name, "r2", NOW + 60, percent=None, error="asked twice,\nin vain")
    head, first, second = said(capsys).splitlines()
    assert head.split() == (
        ["WHEN", "SESSION", "STATUS", "CAUSE", "CONTEXT", "TOOK", "OUTCOME", "STEPS", "DOCUMENT"]
    )
    assert first.split("  ")[:2] == ["2026-01-02 03:03:05", "harb#7"]
    assert first.split()[3:8] == ["unconfirmed", "cycle", "87%", "1m12s", "handoff-1.md"]
    assert "request 0.4s, document 1m06s, clear 5.0s" in first
    assert first.endswith("/x/handoff-1.md")
    assert second.split()[2:7] == ["s-000000aa", "failed", "cycle", "-", "1m12s"]
    assert "asked twice, in vain" in second


def test_of_one_session_by_whatever_it_is_called(
    root: Root, project: Project, ann: AdHocSession, capsys: pytest.CaptureFixture[str]
) -> None:
    put_session(project, 7)
    for number, name in enumerate(("dev-harb-7", ann.name, "dev-harb-7")):
        note(root, name, f"r{number}", NOW + number)
    for target in ("harb#7", "dev-harb-7", "dev-harb"):
        found = json.loads(said(capsys, target, "--json"))
        assert [entry["rotation"] for entry in found] == ["r0", "r2"]
    assert [e["rotation"] for e in json.loads(said(capsys, "s-0", "--json"))] == ["r1"]
    assert [e["rotation"] for e in json.loads(said(capsys, "-n", "2", "--json"))] == ["r1", "r2"]


def test_of_a_session_that_is_long_over(
    root: Root, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    session = put_session(project, 7)
    note(root, "dev-harb-7", "r1", error="asked twice")
    forget(root, session)
    for target in ("harb#7", "dev-harb-7"):
        assert "harb#7" in said(capsys, target)
    assert "harb#7" in said(capsys)
    said(capsys, "--check")  # nobody can see to it any more
    assert run(["health", "harb#8"]) == 2
    assert "no session 'harb#8'" in capsys.readouterr().err
    assert run(["health", "../x"]) == 2


def test_check_tells_cron_of_those_whose_last_one_was_given_up(
    root: Root, project: Project, ann: AdHocSession, capsys: pytest.CaptureFixture[str]
) -> None:
    put_session(project, 7)
    note(root, "dev-harb-7", "r1", error="asked twice")
    note(root, ann.name, "r2", NOW + 1)
    found = json.loads(said(capsys, "--check", "--json", code=1))
    assert [entry["session"] for entry in found] == ["dev-harb-7"]
    assert "asked twice" in said(capsys, "harb#7", "--check", code=1)
    said(capsys, ann.name, "--check")
    note(root, "dev-harb-7", "r3", NOW + 2)  # it went well since
    assert said(capsys, "--check") == ""


def test_damaged_lines_are_passed_over(
    root: Root, ann: AdHocSession, capsys: pytest.CaptureFixture[str]
) -> None:
    note(root, ann.name, "r1")
    with root.health.open("ab") as file:
        file.write(b'{"half":')
    note(root, ann.name, "r2", NOW + 1)
    assert len(said(capsys).splitlines()) == 3


def test_a_damaged_session_hides_no_record(
    root: Root, ann: AdHocSession, capsys: pytest.CaptureFixture[str]
) -> None:
    note(root, ann.name, "r1")
    ann.dir.identity.write_text("{")
    assert ann.name in said(capsys)
