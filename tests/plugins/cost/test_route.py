"""What `sm cost` and `sm status` show of costs is had over HTTP, too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from openapi_spec_validator import validate
from starlette.requests import Request

from sm.__main__ import run
from sm.base.errors import TemporaryError
from sm.plugins.cost.ledger import intake
from sm.plugins.cost.ledger.entries import name_day
from sm.plugins.cost.route import ENDPOINT
from sm.plugins.http.openapi import describe
from sm.plugins.http.routes import ENDPOINTS, make_routes
from sm.sessions.project import Project
from sm.web.endpoint import Endpoint
from tests.plugins.cost.test_report import project, spend

Out = pytest.CaptureFixture[str]
__all__ = ["project"]


def ask(project: Project, endpoint: Endpoint, query: str = "") -> tuple[int, Any]:
    """The status and the answer of a request."""
    (route,) = make_routes(project.machine, [endpoint], {})
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "path_params": {}}
    answer = asyncio.run(route.endpoint(Request(scope | {"query_string": query.encode()})))
    return answer.status_code, json.decode(answer.body)


def test_it_answers_as_sm_cost_does(project: Project, tmp_path: Path, capsys: Out) -> None:
    spend(project, tmp_path)
    day = name_day(1795866852.0)
    for query, words in (
        ("", ()),
        ("by=agent", ("--by", "agent")),
        (f"by=model&since={day}&project=harb", ("--by", "model", "--since", day, "-p", "harb")),
    ):
        assert run(["cost", "--json", *words]) == 0
        shown = json.decode(capsys.readouterr().out)
        assert ask(project, ENDPOINT, query) == (200, {"costs": shown, "warnings": []}), query
    wrong = ("since=2999-01-01", "since=2026-02-30", "since=2026-13-01", "project=other")
    for query in ("by=person", "since=soon", f"since={'9' * 41}", *wrong):
        status, said = ask(project, ENDPOINT, query)
        assert (status, list(said)) == (422, ["error"]), query


def test_it_says_what_is_not_in_the_sums(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TemporaryError("others read them")

    spend(project, tmp_path)
    monkeypatch.setattr(intake, "catch_up", fail)
    said = ask(project, ENDPOINT)[1]["warnings"]
    assert said == ["the newest requests are not in it: others read them"]


def test_sessions_have_what_they_have_cost(project: Project, tmp_path: Path) -> None:
    spend(project, tmp_path)
    _, said = ask(project, ENDPOINTS[0])
    figures = [one["figures"] for one in said["sessions"]]
    assert [one["cost"]["shown"] if one else "" for one in figures] == [
        *("$2.73", "≥$2.50", "≈$2.50", "≥1.2M tok", "")
    ]


def test_it_is_described_with_its_query(project: Project) -> None:
    assert project
    document = describe([*ENDPOINTS, ENDPOINT], "1", token=True)
    validate(document)
    parameters = {one["name"]: one for one in document["paths"]["/cost"]["get"]["parameters"]}
    assert {name: one["in"] for name, one in parameters.items()} == dict.fromkeys(
        ("by", "since", "project"), "query"
    )
    assert "agent" in parameters["by"]["schema"]["enum"]
