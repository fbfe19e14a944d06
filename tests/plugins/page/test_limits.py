"""Budgets on the page: what is used, and how a person raises a limit there."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sm.base.need import NeedKind
from sm.plugins.cost.budget.meter import METER
from sm.sessions.session import IssueSession
from sm.views.board import Board, WatchedBoard
from sm.views.open_need import OpenNeed
from tests.acts.commands import read_act
from tests.plugins.cost.conftest import shop as shop
from tests.plugins.cost.shop import begin, begin_ad_hoc, open_project, write
from tests.plugins.page.client import Browser, make_server

KEY = re.compile(r'name="limit" value="([^"]+)"')
PROPOSED = re.compile(r'name="text" value="([^"]+)"')


@pytest.fixture
def session(shop: Path, monkeypatch: pytest.MonkeyPatch) -> IssueSession:
    """One whose issue has used $11 of $10."""
    project = open_project(shop, "{issue: $10, project: $100}", machine="{session: 1M tokens}")
    monkeypatch.setenv("SM_CONFIG", str(project.config.source))
    session = begin(project, 7)
    write(session, "r1", dollars=11)
    return session


@pytest.fixture
def browser(session: IssueSession) -> Browser:
    browser = Browser(make_server(session.machine))
    browser.log_in()
    return browser


def find_shown(session: IssueSession) -> str:
    [found] = [one for one in METER.list_set(session) if one.key.startswith("issue:")]
    return str(found.shown)


def find_key(page: str, scope: str = "issue") -> str:
    return str(next(key for key in KEY.findall(page) if key.startswith(f"{scope}:")))


def test_a_used_up_budget_is_raised_where_it_is_told(
    session: IssueSession, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    need = OpenNeed(
        key="k",
        kind=NeedKind.BUDGET,
        project="shop",
        issue=7,
        session=session.name,
        text="A budget is used up",
        act=read_act("sm budget raise shop 7 AMOUNT"),
    )
    monkeypatch.setattr(WatchedBoard, "read", lambda *_: Board(at=1.0, needs=(need,)))
    page = browser.read_needs()
    assert "Now $11.00 of $10.00 for this issue" in page
    [proposed] = PROPOSED.findall(page)
    about = {"session": session.name, "project": "shop", "limit": find_key(page)}
    said = browser.act(act="budget-raise", text=proposed, **about).text
    assert "raised by $10.00 by ada@" in said
    assert find_shown(session) == "$11.00 of $20.00 for this issue"


def test_each_limit_of_a_session_can_be_raised_and_lowered_again(
    session: IssueSession, browser: Browser
) -> None:
    path = f"/page/session/{session.name}"
    page = browser.get(path).text
    scopes = [key.partition(":")[0] for key in KEY.findall(page) if key]
    assert scopes == ["session", "issue", "project"]
    assert "Lower …" not in page
    for act, text, shown in (
        ("budget-raise", "5", "$15.00"),
        ("budget-lower", "$2", "$13.00"),
        ("budget-raise", "0.50 USD", "$13.50"),
    ):
        answer = browser.act(act=act, session=session.name, limit=find_key(page), text=text)
        assert answer.status_code == 200, answer.text
        assert find_shown(session) == f"$11.00 of {shown} for this issue"
        assert shown in browser.get(path).text
    assert "Lower …" in browser.get(path).text


@pytest.mark.parametrize(
    ("act", "text", "says"),
    [
        ("budget-raise", "much", "is no amount"),
        ("budget-raise", "", "is no amount"),
        ("budget-raise", "2M tokens", "That limit is in USD"),
        ("budget-lower", "5", "That limit was raised by $0.00"),
    ],
)
def test_what_is_no_raise_changes_nothing(
    session: IssueSession, browser: Browser, act: str, text: str, says: str
) -> None:
    page = browser.get(f"/page/session/{session.name}").text
    answer = browser.act(act=act, session=session.name, limit=find_key(page), text=text)
    assert answer.status_code == 409
    assert says in answer.text
    assert find_shown(session) == "$11.00 of $10.00 for this issue"


def test_a_limit_that_is_gone_says_so(session: IssueSession, browser: Browser) -> None:
    answer = browser.act(act="budget-raise", session=session.name, limit="x", text="5")
    assert answer.status_code == 404
    assert "no such limit any more" in answer.text


def test_a_session_without_an_issue_has_its_own(session: IssueSession, browser: Browser) -> None:
    ann = begin_ad_hoc(session.project, "s-00000001")
    page = browser.get(f"/page/session/{ann.name}").text
    assert "0 tokens of 1.0M tokens for this session" in page
    key = find_key(page, "session")
    answer = browser.act(act="budget-raise", session=ann.name, limit=key, text="500k")
    assert "of 1.5M tokens" in answer.text


def test_of_two_who_raise_a_limit_at_once_one_is_told_of_the_other(
    session: IssueSession, browser: Browser
) -> None:
    page = browser.get(f"/page/session/{session.name}").text
    about = {"session": session.name, "limit": find_key(page), "known": "", "text": "5"}
    with ThreadPoolExecutor(2) as both:
        answers = list(both.map(lambda _: browser.act(act="budget-raise", **about), range(2)))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    [refused] = [answer.text for answer in answers if answer.status_code == 409]
    assert re.search(r"ada@\S+ has raised it by \$5.00 \d+s ago", refused)
    assert find_shown(session) == "$11.00 of $15.00 for this issue"
    seen = browser.act(act="budget-raise", **about | {"known": "$5.00"})
    assert seen.status_code == 200, "who has seen it may go on"
