"""What a node is told of limits, and what that leaves to its sessions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec import structs

from sm.adapters.agent.claude import CLAUDE
from sm.base.need import NeedKind
from sm.issues import placements
from sm.issues.rules.allowance import LimitStage
from sm.issues.runners import Elsewhere, Placement
from sm.plugins.cost.budget import remote_limits
from sm.plugins.cost.budget.meter import METER
from sm.plugins.cost.budget.overview import list_set
from sm.plugins.cost.budget.remote_limits import make_limit
from sm.plugins.cost.budget.rules import (
    OF_SESSION,
    BudgetLimit,
    ModelUse,
    RemoteLimit,
    SumSpan,
    add_up,
    merge,
    weigh,
)
from sm.plugins.cost.checks import check_ledger
from sm.plugins.cost.ledger import nodes
from sm.plugins.cost.ledger.amount import AmountUnit
from sm.plugins.cost.ledger.nodes import NodeContact
from sm.plugins.cost.ledger.progress import find_beginning
from sm.plugins.cost.ledger.scopes import Scope, name_session
from sm.plugins.cost.sync import home
from sm.plugins.hosts.there import There
from sm.store.paths import Root
from sm.views.open_need import OpenNeed
from tests.acts.commands import read_act
from tests.plugins.cost.shop import begin, open_project, write

MODEL = "claude-opus-4-5"
SPAN = SumSpan(Scope.PROJECT, "shop", "shop")
PLACEMENT = Placement("shop", 7, "dev-shop-7", "ssh", "box", 1, "c", "dev-shop-7", 1.0)


def make_told(used: int, heard: int, height: int = 100, **more: object) -> RemoteLimit:
    return structs.replace(
        RemoteLimit(SPAN, "shop", 0, AmountUnit.TOKENS, height, "for shop", "sm budget raise shop"),
        rows=(ModelUse(MODEL, 1, tokens=used),),
        heard=(ModelUse(MODEL, 1, tokens=heard),),
        **more,
    )


def use(limit: BudgetLimit, own: int) -> LimitStage:
    """How far it is used up, with so much in the node's own ledger."""
    rows = [ModelUse(MODEL, 1, tokens=own), *limit.elsewhere]
    return weigh(limit, add_up(rows, limit)).stage


def test_what_was_heard_of_a_node_counts_once_there() -> None:
    limit = make_limit(make_told(used=70, heard=40), time.time())
    assert use(limit, own=40) is LimitStage.FREE, "70 in all, 40 of it here"
    assert use(limit, own=55) is LimitStage.NEAR
    assert use(limit, own=70) is LimitStage.OVER


def test_what_was_used_before_midnight_is_void_after_it() -> None:
    over = make_told(used=99, heard=40, ends_at=1000.0)
    assert use(make_limit(over, 999.0), own=42) is LimitStage.OVER
    assert use(make_limit(over, 1000.0), own=42) is LimitStage.FREE


def test_rows_are_put_together_by_model() -> None:
    rows = [
        ModelUse("a", 1, 10, largest_tokens=10),
        ModelUse("a", 2, 30, largest_tokens=20),
        ModelUse("b", 1, 5),
    ]
    assert merge(rows, [ModelUse("a", 1, 10)]) == [
        ModelUse("a", 2, 30, largest_tokens=20),
        ModelUse("b", 1, 5),
    ]


def test_a_node_is_told_the_limits_of_its_issues(tmp_path: Path, root: Root) -> None:
    budget = "{issue: $1, day: $2, project: $3, session: $4}"
    project = open_project(tmp_path, budget, "{day: $9}", root=root.path)
    others = [structs.replace(PLACEMENT, issue=8), structs.replace(PLACEMENT, project="other")]
    meant = home.list_meant(project.config, [PLACEMENT, *others])
    assert [one.issue for one in meant if one.issue] == [7, 7, 8, 8]
    assert {(str(one.limit.scope), one.project) for one in meant} == {
        ("issue", "shop"),
        ("session", "shop"),
        ("project-day", "shop"),
        ("project", "shop"),
        ("day", ""),
    }
    assert home.list_meant(project.config, ()) == []


def test_a_person_may_raise_here_what_a_session_elsewhere_is_under(
    tmp_path: Path, root: Root
) -> None:
    budget = "{issue: $1, project: $3, session: 1M tokens}"
    ledger = tmp_path / "l" / "ledger.db"
    ledger.parent.mkdir(mode=0o700)
    project = open_project(tmp_path, budget, ledger=ledger, root=root.path)
    there = Elsewhere(project, PLACEMENT)
    found = {one.act.command: one for one in METER.list_set(there)}
    assert list(found) == [
        "sm budget raise shop 7 --session AMOUNT",
        "sm budget raise shop 7 AMOUNT",
        "sm budget raise shop --project AMOUNT",
    ]
    own = found["sm budget raise shop 7 --session AMOUNT"]
    said = "for this session: its machine knows what it has used"
    assert own.shown == f"1.0M tokens {said}"
    assert own.raise_by("500k").endswith(f": 1.5M tokens {said}")
    need = OpenNeed(key="k", kind=NeedKind.BUDGET, text="all of it", act=own.act)
    keys = [one.key for one in There(there.project, there.placement).list_limits(need)]
    assert len(keys) == 3
    assert not any(key.startswith("there:") for key in keys), "its node was told of it by us"
    of_node = structs.replace(need, act=read_act("sm budget raise --day AMOUNT"))
    assert There(there.project, there.placement).list_limits(of_node)[-1].key == "there:--day"


def test_only_sessions_that_were_placed_here_are_under_them(tmp_path: Path, root: Root) -> None:
    project = open_project(tmp_path, "{}", ledger=tmp_path / "l" / "ledger.db", root=root.path)
    (tmp_path / "l").mkdir(mode=0o700)
    session = begin(project, 7)
    spent = make_told(used=200, heard=0, allows_unknown=True)
    assert remote_limits.keep(project.config, "home", (spent,))
    assert not remote_limits.keep(project.config, "home", (spent,)), "nothing is new"
    assert METER.read(session) is None
    placed = type(session)(structs.replace(session.record, attempt=1, claim="c"))
    allowance = METER.read(placed.provide(project=project))
    assert allowance
    assert allowance.stage is LimitStage.SPENT
    assert allowance.command == "sm budget raise shop"
    (shown,) = list_set(project.config, root)
    assert shown.called == "shop, set elsewhere"
    remote_limits.keep(project.config, "home", ())
    assert METER.read(placed.provide(project=project)) is None


def test_a_limit_of_a_session_looks_at_its_own_sums(tmp_path: Path, root: Root) -> None:
    project = open_project(tmp_path, "{}", ledger=tmp_path / "l" / "ledger.db", root=root.path)
    (tmp_path / "l").mkdir(mode=0o700)
    session = begin(project, 7)
    placed = type(session)(structs.replace(session.record, attempt=1, claim="c"))
    session = placed.provide(project=project)
    one = structs.replace(make_told(0, 0, height=1000), span=OF_SESSION, issue=7, rows=(), heard=())
    remote_limits.keep(project.config, "home", (one,))
    (limit,) = remote_limits.list_told(session, time.time())
    assert limit.name == limit.last_name == name_session(session.name, find_beginning(session))
    write(session.provide(profile=CLAUDE), "r1", dollars=1)
    allowance = METER.read(session)
    assert allowance
    assert allowance.stage is LimitStage.SPENT


def test_nothing_begins_while_a_machine_with_sessions_is_silent(tmp_path: Path, root: Root) -> None:
    project = open_project(tmp_path, "{day: $5}", root=root.path)
    directory = project.directory
    placements.keep(directory, PLACEMENT)
    assert METER.admit(project) is None, "it was not asked yet"
    contact = NodeContact(PLACEMENT, time.time(), heard_at=time.time() - 200)
    nodes.note_silent(root, "box", contact, "no route")
    assert METER.admit(project) is None, "it may come back at once"
    silent = structs.replace(contact, silent_since=time.time() - 100)
    nodes.note_silent(root, "box", silent, "no route")
    with pytest.raises(Exception, match=r"what agents on 'box' use was not heard for .*: no route"):
        METER.admit(project)
    (note,) = nodes.list_unheard(root)
    assert note.startswith("without what agents on 'box' have used in the last 3m")
    allowing = open_project(tmp_path, "{day: $5, unknown: allow}", root=root.path)
    assert METER.admit(allowing) is None
    nodes.note_heard(root, "box", contact)
    assert METER.admit(project) is None


def test_an_issue_elsewhere_has_its_limit_shown(tmp_path: Path, root: Root) -> None:
    project = open_project(tmp_path, "{issue: $5}", root=root.path)
    placements.keep(project.directory, PLACEMENT)
    (found,) = list_set(project.config, root)
    assert (found.called, found.issue, found.limit.scope) == ("shop#7", 7, Scope.ISSUE)


def test_an_issue_elsewhere_is_expected_to_use_more(tmp_path: Path, root: Root) -> None:
    project = open_project(tmp_path, "{day: $5, estimate: $3}", root=root.path)
    assert METER.admit(project) is None
    placements.keep(project.directory, PLACEMENT)
    found = METER.admit(project)
    assert found
    assert "$3.00 for open issues" in found.shown


def test_a_machine_is_asked_until_its_last_words_are_heard(tmp_path: Path, root: Root) -> None:
    project = open_project(tmp_path, "{}", root=root.path)
    names = ["shop", "other"]
    assert not nodes.may_be_any(root, names)
    placements.keep(project.directory, PLACEMENT)
    assert nodes.may_be_any(root, names)
    (contact,) = nodes.list_contacts(project.config, root).values()
    nodes.note_heard(root, "box", contact)
    placements.forget(project.directory, 7)
    assert nodes.may_be_any(root, names)
    nodes.note_heard(root, "box", contact)
    assert nodes.may_be_any(root, names), "lines are written late"
    late = structs.replace(contact, seen_at=contact.seen_at - 2 * nodes.AT_LEAST_S)
    nodes.note_heard(root, "box", late)
    assert not nodes.may_be_any(root, names)


def test_a_job_that_has_ended_may_have_used_some_more(root: Root) -> None:
    now = time.time()
    contact = NodeContact(PLACEMENT, now - 20, heard_at=now - 22, is_over=True)
    nodes.note_silent(root, "n1", contact, "job 7 does not answer")
    (note,) = nodes.list_unheard(root)
    assert note.startswith("perhaps without the last that agents on 'n1' have used: job 7")
    nodes.note_silent(root, "n1", structs.replace(contact, seen_at=1.0), "job 7")
    assert not list(nodes.list_unheard(root)), "it is given up"


def test_one_that_is_too_old_is_named(tmp_path: Path, root: Root) -> None:
    nodes.note_too_old(root, "box", NodeContact(PLACEMENT, time.time()))
    (note,) = nodes.list_unheard(root)
    assert "too old to tell" in note
    project = open_project(tmp_path, "{}", ledger=tmp_path / "l" / "ledger.db", root=root.path)
    assert note in [one.what for one in check_ledger(project.config)]


def test_a_machine_that_is_no_host_any_more_is_forgotten(root: Root) -> None:
    lately = NodeContact(PLACEMENT, time.time())
    nodes.note_gone(root, "box", lately, "no host 'box'")
    assert list(nodes.list_unheard(root))
    nodes.note_gone(root, "box", structs.replace(lately, seen_at=1.0), "no host 'box'")
    assert not list(nodes.list_unheard(root))
