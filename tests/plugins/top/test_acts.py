"""What answers a need by a key: the same as the verb, in the words of the page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sm.adapters.forge.model import PullState
from sm.base.act import ActKind
from sm.base.errors import SmError
from sm.base.need import NeedKind
from sm.config.load import load
from sm.plugins.top import acts
from sm.plugins.top.listing import ListEntry
from sm.sessions.caller import Caller
from sm.sessions.project import Project
from sm.store.paths import Root
from tests.hub import make_hub
from tests.plugins.cost.conftest import shop as shop
from tests.plugins.cost.shop import begin, open_project, write
from tests.plugins.top.rows import a_need, a_row
from tests.residents import settle


def an_entry(kind: NeedKind, command: str, over: str = "", **row: Any) -> ListEntry:
    need = a_need(7, kind=kind, command=command, project=row.get("project", "shop"))
    return ListEntry("dev-shop-7", a_row(7, **row), need, over)


REVIEW = an_entry(NeedKind.REVIEW, "sm review shop#24 --approve", head="c0ffee", pull=24)
MERGE = an_entry(NeedKind.MERGE, "sm pr merge shop#24", head="c0ffee", pull=24)
BUDGET = an_entry(NeedKind.BUDGET, "sm budget raise shop 7 AMOUNT")
BROKEN = an_entry(NeedKind.CI, "sm ci rerun shop 7")
QUESTION = an_entry(NeedKind.QUESTION, "sm reply shop 7 TEXT")


@pytest.mark.parametrize(
    ("entry", "keys", "chosen"),
    [
        (REVIEW, ["A", "C"], None),
        (MERGE, ["M"], ActKind.MERGE),
        (BUDGET, ["B"], ActKind.RAISE),
        (BROKEN, [], ActKind.RERUN),
        (QUESTION, [], ActKind.REPLY),
        (ListEntry("dev-shop-7", a_row(7)), [], ActKind.SEND),
        (an_entry(NeedKind.REVIEW, "sm review shop#24", over="merged"), [], ActKind.SEND),
    ],
)
def test_each_need_has_its_keys(entry: ListEntry, keys: list[str], chosen: ActKind | None) -> None:
    assert acts.list_keys(entry) == keys
    assert acts.choose_answer(entry) is chosen


def test_it_is_said_what_will_be_done_and_what_is_not_needed_is_refused(root: Root) -> None:
    plan = acts.plan(root, ActKind.APPROVE, REVIEW)
    assert plan.says == "Approves pull request 24 at c0ffee: it may be merged."
    assert plan.optional
    assert not acts.plan(root, ActKind.REQUEST_CHANGES, REVIEW).optional
    with pytest.raises(SmError, match="needs something else: sm reply shop 7 TEXT"):
        acts.plan(root, ActKind.APPROVE, QUESTION)
    with pytest.raises(SmError, match="needs nobody to merge it"):
        acts.plan(root, ActKind.MERGE, ListEntry("dev-shop-7", a_row(7)))


def test_a_pull_request_is_merged_at_the_commit_that_was_shown(root: Root, tmp_path: Path) -> None:
    hub = make_hub(tmp_path)
    head = hub.push("fix/7")
    pull = hub.open().pulls.open("fix/7", "main", "T", author="sm")
    config = load(hub.config, os.environ, tmp_path)
    projects = {"harb": Project(config, config.projects[0])}
    command = f"sm pr merge harb#{pull.number}"

    def merge(at: str) -> list[str]:
        entry = an_entry(NeedKind.MERGE, command, project="harb", head=at, pull=pull.number)
        plan = acts.plan(root, ActKind.MERGE, entry, projects)
        assert plan.says == f"Merges pull request {pull.number} at {at[:12]} on the forge."
        return acts.carry_out(root, plan, projects=projects)

    with pytest.raises(SmError):
        merge("0" * 40)
    newer = hub.push("fix/7", content="more\n")
    with pytest.raises(SmError, match="1 new commit in pull request"):
        merge(head)
    old = an_entry(NeedKind.MERGE, command, project="harb", head=head, pull=pull.number)
    shown = acts.read_change(root, acts.plan(root, ActKind.MERGE, old, projects), old, projects)
    assert "+more" in shown.patch
    assert shown.plan
    assert (shown.head, shown.plan.act.head) == (newer, newer), "what is shown is what is merged"
    head = newer
    assert merge(head)[0].startswith(f"merged #{pull.number} at {head[:12]} as ")
    assert hub.open().pulls.read(pull.number).state is PullState.MERGED


def test_a_used_up_budget_is_raised_by_what_is_proposed_or_typed(shop: Path) -> None:
    project = open_project(shop, "{issue: $10}")
    session = begin(project, 7)
    write(session, "r1", dollars=11)
    entry = ListEntry(session.name, a_row(7, id=session.name), BUDGET.need)
    plan = acts.plan(project.root, ActKind.RAISE, entry, {"shop": project})
    assert plan.proposal
    [said] = acts.carry_out(project.root, plan, plan.proposal)
    assert said.startswith("the limit was raised")
    with pytest.raises(SmError):
        acts.carry_out(project.root, plan, "much")


def test_an_agent_decides_nothing_here(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Caller(settle(root, tmp_path, "s-000000aa"))
    monkeypatch.setattr(acts, "identify", lambda *_: agent)
    plan = acts.plan(root, ActKind.APPROVE, REVIEW)
    with pytest.raises(SmError, match="only a person may approve it here"):
        acts.carry_out(root, plan)
