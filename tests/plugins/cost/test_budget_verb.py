"""`sm budget`: what it shows, and what a person decides by it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sm.__main__ import run
from sm.adapters.agent.claude import CLAUDE
from sm.adapters.agent.profile import Profile
from sm.adapters.agent.profiles import GENERIC
from sm.issues import placements
from sm.issues.rules.allowance import LimitStage
from sm.issues.runners import Placement
from sm.plugins.cost import checks
from sm.plugins.cost.budget.balances import Balances
from sm.plugins.cost.budget.meter import METER
from sm.plugins.cost.budget.rules import OF_SESSION
from sm.plugins.cost.checks import check_budget
from sm.plugins.cost.ledger import progress
from sm.plugins.cost.ledger.entries import open_ledger
from sm.plugins.cost.settings import find_ledger
from sm.plugins.cost.sync import home
from sm.sessions import caller
from sm.sessions.project import Project
from sm.sessions.session import AnySession
from sm.store import journal
from sm.store.events import FromPlugin
from tests.plugins.cost.shop import begin, begin_ad_hoc, open_project, write

Out = pytest.CaptureFixture[str]


@pytest.fixture
def project(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    found = open_project(
        shop,
        "{issue: $10, session: 1M tokens, day: $20, project: $100}",
        machine="{day: $50, session: $3}",
    )
    monkeypatch.setenv("SM_CONFIG", str(found.config.source))
    return found


def stage(session: AnySession) -> LimitStage:
    found = METER.read(session)
    assert found
    return found.stage


def test_each_limit_with_what_is_used_and_left(project: Project, capsys: Out) -> None:
    write(begin(project, 7), "r1", dollars=8)
    begin_ad_hoc(project, "s-00000001")
    assert run(["budget", "raise", "shop", "7", "5"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("raised by $5.00 by ada@")
    assert said.endswith(": $8.00 of $15.00 for this issue\n")
    assert run(["budget"]) == 0
    shown = capsys.readouterr().out.splitlines()
    day = time.strftime("%Y-%m-%d")
    decided = shown[4].partition("last by ")[2]
    assert decided.startswith(f"ada@{os.uname().nodename} {day}")
    assert [line.partition(", last by")[0] for line in shown] == [
        "Budget                Limit           Used           Left  Raised",
        "today                $50.00          $8.00         $42.00",
        "shop, today          $20.00          $8.00         $12.00",
        "shop                $100.00          $8.00         $92.00",
        "shop#7               $15.00          $8.00          $7.00  $5.00",
        "session shop#7  1.0M tokens  320.0k tokens  680.0k tokens",
        "session ann           $3.00          $0.00          $3.00",
    ]


def test_the_limit_of_a_session_elsewhere_is_raised_here(project: Project, capsys: Out) -> None:
    placed = Placement("shop", 8, "dev-shop-8", "ssh", "box", 2, "c", "h", 1.0)
    placements.keep(project.directory, placed)
    assert run(["budget", "raise", "shop", "8", "1M", "--session"]) == 0
    said = capsys.readouterr().out
    assert said.endswith(": 2.0M tokens for this session: its machine knows what it has used\n")
    with open_ledger(find_ledger(project.config)) as ledger:
        meant = home.list_meant(project.config, [placed])
        told = home.tell(Balances(ledger.connection), meant, {one.span: () for one in meant})
    assert told
    assert [one.height for one in told if one.span == OF_SESSION] == [2_000_000]


def test_the_same_for_programs(project: Project, capsys: Out) -> None:
    write(begin(project, 7), "r1", dollars=8)
    assert run(["budget", "raise", "shop#7", "$5"]) == 0
    assert run(["budget", "lower", "shop#7", "1.5", "USD"]) == 0
    capsys.readouterr()
    assert run(["budget", "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    (issue,) = [row for row in rows if row["scope"] == "issue"]
    assert (issue["project"], issue["issue"], issue["unit"]) == ("shop", 7, "USD")
    assert (issue["limit"], round(issue["used"], 2), issue["stage"]) == (13.5, 8.0, "free")
    assert [one["amount"] for one in issue["raises"]] == [5.0, -1.5]
    (session,) = [row for row in rows if row["scope"] == "session" and row["issue"] == 7]
    assert session["limit"] == 1_000_000


def test_a_raise_holds_at_once_for_each_limit(project: Project) -> None:
    session = begin(project, 7)
    os_fifo = os.open(session.dir.wake, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(session, "r1", dollars=21)
        assert stage(session) is LimitStage.SPENT  # its issue's $10
        assert os.read(os_fifo, 99), "its monitor was not woken by what it has used"
        assert run(["budget", "raise", "shop", "7", "100"]) == 0
        assert os.read(os_fifo, 99), "its monitor was not woken"
        assert stage(session) is LimitStage.OVER  # its project's day
        assert run(["budget", "raise", "shop", "--day", "100"]) == 0
        assert stage(session) is LimitStage.NEAR  # its own tokens
        assert run(["budget", "raise", "shop", "7", "--session", "1M"]) == 0
        assert stage(session) is LimitStage.FREE
        assert run(["budget", "lower", "shop", "7", "100"]) == 0
        assert stage(session) is LimitStage.SPENT
    finally:
        os.close(os_fifo)


def test_it_is_on_record_who_has_decided(project: Project) -> None:
    session = begin(project, 7)
    assert run(["budget", "raise", "shop", "7", "5"]) == 0
    assert run(["budget", "raise", "--day", "5"]) == 0
    events = [
        event for event in journal.read(project.root.journal) if isinstance(event, FromPlugin)
    ]
    assert [event.session for event in events] == [session.name, ""]
    assert "raised by $5.00 by ada@" in events[0].text


def test_a_session_without_an_issue_is_named_alone(project: Project, capsys: Out) -> None:
    begin_ad_hoc(project, "s-00000001")
    assert run(["budget", "raise", "ann", "5"]) == 0
    assert "$0.00 of $8.00 for this session" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("raise", 2, "by how much? write an amount"),
        ("raise shop", 2, "raise what? name a session, an issue"),
        # A shell has taken $5 for a variable.
        ("raise shop 7", 2, "by how much? write an amount behind it: sm budget raise shop 7 5"),
        ("raise shop#7", 2, "by how much? write an amount behind it: sm budget raise shop#7 5"),
        ("raise shop --day", 2, "'shop' is no amount: write 5, as a shell takes $5"),
        ("raise shop 7 x", 2, "'x' is no amount: write 5"),
        ("raise shop 7 2M tokens", 2, "that limit is in USD"),
        ("raise nowhere 7 5", 2, "no project 'nowhere'"),
        ("raise other 7 5", 2, "no limit is set for an issue of 'other': budget.issue"),
        ("raise other --day 5", 2, "no limit is set for a day of 'other' alone"),
        ("raise other --project 5", 2, "no limit is set for 'other': budget.project"),
        ("lower shop 7 5", 2, "that limit was raised by $0.00: to lower it further"),
    ],
)
def test_what_cannot_be_decided(
    project: Project, capsys: Out, arguments: str, code: int, says: str
) -> None:
    assert run(["budget", *arguments.split()]) == code
    assert says in capsys.readouterr().err
    assert METER.read(begin(project, 8)), "and the limits stay"


def test_an_agent_does_not_decide_it(
    project: Project, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = begin(project, 7)
    monkeypatch.setattr(caller, "identify", lambda *_: caller.Caller(session))
    assert run(["budget", "raise", "shop", "7", "5"]) == 2
    assert "what agents may use is decided by a person" in capsys.readouterr().err


def test_without_a_budget_it_says_so(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("SM_CONFIG", str(open_project(shop, "{}").config.source))
    assert run(["budget"]) == 0
    assert capsys.readouterr().err == "no budget is set: see docs/COST.md\n"


def test_the_doctor_says_what_keeps_a_budget_from_being_known(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(budget: str, profile: Profile = CLAUDE) -> list[str]:
        found = open_project(shop, budget)
        found.__dict__["profile"] = profile
        return [one.what for one in check_budget(found)]

    assert check("{}") == []
    assert check("{issue: $1}") == ["what its agents use is limited: 'sm budget' shows it"]
    assert "what 'generic' uses is in no record" in check("{issue: $1}", GENERIC)[0]
    assert check("{issue: $1, unknown: allow}", GENERIC) == []
    session = begin(open_project(shop, "{issue: $1}"), 7)
    write(session, "r1", read=False)
    stage(session)
    progress.find_behind(session).write_text(f"{time.time() - 60}\n")
    assert check("{issue: $1}")[0] == "what 'dev-shop-7' uses was not read for 60 s: it is held"
    progress.find_behind(session).unlink()
    monkeypatch.setattr(checks, "name_source", lambda: "")
    assert "no prices are known" in check("{issue: $1}")[0]
    assert "limited" in check("{issue: 1M tokens}")[0]
