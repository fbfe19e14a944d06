"""A session that is asked an agent's question before people are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sm.sessions.history import StepVerb
from sm.store.paths import Root
from tests.company import SM, Company, make_company
from tests.e2e.conftest import MakeStage
from tests.e2e.stage import Stage, started
from tests.e2e.test_faults import around, assert_died_at, crash_at
from tests.helpers import wait_for

ASKED = "[sm] harb#1 asks, and you are asked before people are."


@pytest.fixture
def company(stage_of: Callable[..., object], tmp_path: Path, root: Root) -> Iterator[Company]:
    made = make_company(tmp_path, root)
    yield made
    made.end()


def begin(stage_of: MakeStage, company: Company, first_for: str) -> tuple[Stage, Path]:
    """A gardener, and an agent that has just asked; returns what people are told in, too."""
    heard = company.folder / "heard"
    company.new("gardener")
    escalation = {"first": "gardener", "first_for": first_for}
    stage = stage_of(
        auto=False, settings={"escalation": escalation, "notify_command": f"cat >>'{heard}'"}
    )
    started(stage)
    stage.write_phase(1, "PHASE:escalate\nReason: which colour?\nThe walls, I mean.")
    told = company.hears("gardener", ASKED)
    assert "which colour?\nThe walls, I mean." in told
    assert "sm reply harb 1 TEXT" in told
    return stage, heard


def test_what_the_gardener_answers_reaches_the_agent_and_no_person_is_told(
    stage_of: MakeStage, company: Company
) -> None:
    stage, heard = begin(stage_of, company, "10m")
    need = stage.find_need("question")
    assert "gardener has been asked until" in need["text"]
    assert need["command"] == "sm reply harb 1 TEXT"
    reply = f"env SM_CONFIG={stage.config} {SM} reply harb 1"
    assert company.run_in("gardener", f"{reply} green").startswith("0")
    told = wait_for(lambda: [t for t in stage.told() if "green" in t], "the answer")
    assert told[0].startswith("[sm] The session gardener answered:\n")
    refused = company.run_in("gardener", f"{reply} red")
    assert "gardener answered first" in refused
    (comment,) = stage.project.forge.issues.read(1).comments
    assert comment.body.startswith("gardener answered:\n\ngreen")
    assert not heard.exists(), heard.read_text()


def test_what_the_gardener_does_not_answer_people_are_asked_once(
    stage_of: MakeStage, company: Company
) -> None:
    stage, heard = begin(stage_of, company, "3s")
    wait_for(lambda: heard.exists() and heard.read_text().endswith("\n"), "people to be asked")
    assert "gardener has been asked" not in stage.find_need("question")["text"]
    stage.sm("reply", "harb", "1", "blue, please")
    told = wait_for(lambda: [t for t in stage.told() if "blue, please" in t], "the answer")
    assert told[0].startswith("[sm] A person answered:\n")
    why = "harb#1 needs a person: The agent asks for a person (which colour?)."
    assert heard.read_text().count("harb#1 needs a person") == 1
    assert heard.read_text().startswith(why)
    assert len([text for text in company.noted("gardener") if ASKED in text]) == 1


def test_the_gardener_is_asked_once_although_the_reactor_dies_at(
    stage_of: MakeStage, company: Company
) -> None:
    points = around(StepVerb.CONSULT)
    company.new("gardener")
    stage = stage_of(auto=False, settings={"escalation": {"first": "gardener", "first_for": "10m"}})
    issue = stage.file_issue()
    stage.poll(env=crash_at(stage, points))
    wait_for(stage.told, "the first prompt")
    stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    assert_died_at(stage, points)
    session = stage.session(issue)
    wait_for(lambda: '"first-escalate:' in session.dir.receipts.read_text(), "the receipt")
    wait_for(lambda: not session.dir.plan.exists(), "the end of the plan")
    company.hears("gardener", ASKED)
    assert len([text for text in company.noted("gardener") if ASKED in text]) == 1


def test_people_are_asked_at_once_where_no_gardener_runs(
    stage_of: MakeStage, company: Company
) -> None:
    heard = company.folder / "heard"
    escalation = {"first": "harb#1", "first_for": "1h"}
    stage = stage_of(
        auto=False, settings={"escalation": escalation, "notify_command": f"cat >>'{heard}'"}
    )
    started(stage)
    stage.write_phase(1, "PHASE:escalate\nReason: which colour?")
    wait_for(lambda: heard.exists() and "which colour?" in heard.read_text(), "people to be asked")
    assert not [text for text in stage.told() if ASKED in text], "it was asked by itself"
