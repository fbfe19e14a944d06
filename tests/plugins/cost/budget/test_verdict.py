"""A new issue begins only where what it is expected to use still fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from sm.adapters.agent.profiles import GENERIC
from sm.issues import meters
from sm.issues.rules.allowance import LimitStage
from sm.plugins.cost.budget.meter import METER
from sm.sessions import registry
from sm.sessions.project import Project
from sm.sessions.session import IssueSession
from sm.store.files import ensure_private_dir
from tests.plugins.cost.shop import begin, open_project, write


def finish(project: Project, issue: int, dollars: float) -> None:
    """An issue that has used so much, and is over."""
    session = begin(project, issue)
    write(session, f"past-{issue}", dollars=dollars)
    registry.forget(project.root, session)


def begin_all(project: Project, first: int) -> list[IssueSession]:
    """As dev-poll does it: one after another, as long as nothing is against one more."""
    begun = list[IssueSession]()
    while METER.admit(project) is None and len(begun) < 20:
        begun.append(begin(project, first + len(begun)))
    return begun


def test_the_median_of_past_issues_has_to_fit_into_what_is_left(shop: Path) -> None:
    project = open_project(shop, "{project: $30, estimate: $29}")
    for issue, dollars in enumerate((1, 1, 4, 5), 1):
        finish(project, issue, dollars)
    objection = METER.admit(project)
    assert objection
    assert objection.shown == "no room for an issue of about $29.00: $11.00 of $30.00 for shop"
    finish(project, 5, 6)  # the fifth: now the median counts, which is $4
    begun = begin_all(project, 10)
    assert len(begun) == 3  # $17 are used: 3 × $4 fit into the other $13
    write(begun[0], "r1", dollars=3)
    assert METER.admit(project), "what one has used was expected of it"
    objection = METER.admit(open_project(shop, "{project: $18}"))
    assert objection
    assert (objection.stage, objection.command) == (
        LimitStage.OVER,
        "sm budget raise shop --project AMOUNT",
    )


def test_before_there_are_five_it_is_the_estimate_or_the_limit_of_an_issue(shop: Path) -> None:
    assert len(begin_all(open_project(shop, "{day: $10, estimate: $3}"), 1)) == 3
    for number in (1, 2, 3):
        registry.forget(open_project(shop, "{}").root, begin(open_project(shop, "{}"), number))
    assert len(begin_all(open_project(shop, "{day: $10, issue: $5}"), 1)) == 2


def test_an_issue_may_begin_that_may_use_more_than_a_day_has(shop: Path) -> None:
    assert len(begin_all(open_project(shop, "{day: $10, issue: $50}"), 1)) == 1


def test_a_day_of_all_projects_counts_the_open_issues_of_each(shop: Path) -> None:
    project = open_project(shop, "{}", machine="{day: $10, estimate: $4}")
    settings = project.config.project("other")
    assert settings
    other = Project(project.config, settings)
    begin(other, 1)
    assert METER.admit(project) is None
    begin(project, 1)
    objection = METER.admit(project)
    assert objection
    assert objection.shown == (
        "no room for an issue of about $4.00: $0.00 of $10.00 for today, $8.00 for open issues"
    )
    assert objection.until


def test_an_issue_that_is_just_being_taken_up_counts(shop: Path) -> None:
    project = open_project(shop, "{day: $10, estimate: $6}")
    slots = project.root.project(project.name).slots
    ensure_private_dir(slots)
    (slots / "dev-shop-12").touch()
    assert METER.admit(project)
    (slots / "dev-shop-12").unlink()
    assert METER.admit(project) is None


@pytest.mark.parametrize(
    ("own", "machine", "is_refused"),
    [
        ("{issue: $10}", "{}", True),
        ("{session: 1M tokens}", "{}", True),
        ("{project: $10}", "{}", True),
        ("{}", "{day: $10}", True),
        ("{issue: $10, unknown: allow}", "{}", False),
        ("{estimate: $3}", "{}", False),
    ],
)
def test_an_agent_cli_of_which_nothing_can_be_counted_begins_nothing_under_a_budget(
    shop: Path, own: str, machine: str, is_refused: bool
) -> None:
    project = open_project(shop, own, machine)
    assert METER.admit(project) is None
    project.__dict__["profile"] = GENERIC
    objection = METER.admit(project)
    assert bool(objection) == is_refused
    if objection:
        assert objection.shown == (
            "a budget is set, and what 'generic' uses is in no record that can be read: set "
            "budget.unknown to allow, or use an agent CLI that docs/COST.md names"
        )


def test_nothing_begins_while_the_ledger_cannot_be_read(shop: Path, ledger: Path) -> None:
    project = open_project(shop, "{day: $10}")
    finish(project, 1, 1)
    ledger.write_bytes(b"x" * 9000)
    objection = meters.find_objection(project)
    assert objection
    assert objection.stage is LimitStage.BLIND
    assert "is damaged" in objection.shown
    assert meters.list_failures(project)
