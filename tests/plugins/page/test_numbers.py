"""The page of numbers, its pictures and its files."""

from __future__ import annotations

import csv
import io
import re
import threading
import time
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from msgspec import json

from sm.plugins.cost.display import format_price
from sm.plugins.cost.ledger.amount import shorten_count
from sm.plugins.cost.ledger.sums import SumGroup, add_up
from sm.plugins.cost.report import parse_since, read_report
from sm.plugins.cost.settings import find_ledger
from sm.plugins.page.numbers import charts, page
from sm.plugins.page.numbers.charts import Chart, Series, Unit
from sm.plugins.page.numbers.drawing import POLICY, STYLE, draw
from sm.plugins.page.numbers_desk import ShownNumbers
from sm.sessions.history import StepVerb
from sm.sessions.project import Project
from sm.store import events, journal
from sm.store.files import ensure_private_dir
from tests.plugins.page.client import TOKEN, Browser, Read, make_server
from tests.plugins.page.past import spend, tell_weeks, use

CHARTS = re.compile(r'<img src="(/page/numbers/[a-z-]+\.svg\?[^"]*)" alt="([^"]*)"')
HOSTILE = '"><script>alert(1)</script>\u202e\x1b[31m'


@pytest.fixture
def ledger(project: Project) -> Path:
    path = find_ledger(project.machine.settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def weeks(project: Project, ledger: Path) -> Project:
    """Forty days of work in two projects."""
    tell_weeks(project.root, ledger, days=40, projects=(project.name, "web.shop"))
    return project


def list_charts(browser: Browser, query: str = "") -> dict[str, str]:
    """The address of each picture of the page, and what it says in words."""
    html = browser.get(f"/page/numbers{query}").text
    return {path.replace("&amp;", "&"): words for path, words in CHARTS.findall(html)}


def read_json(browser: Browser, query: str = "") -> Any:
    return json.decode(browser.get(f"/page/numbers/numbers.json{query}").content)


def test_an_empty_machine_has_nothing_to_show(browser: Browser) -> None:
    read = Read(browser.get("/page/numbers").text)
    assert "Nothing has happened in that time." in read.text
    assert "Figures" not in read.text
    assert not [tag for tag, _ in read.elements if tag in ("img", "table")]


@pytest.mark.parametrize("span", ["7", "30", "all"])
def test_the_page_says_what_sm_cost_says(weeks: Project, browser: Browser, span: str) -> None:
    text = Read(browser.get(f"/page/numbers?span={span}").text).text
    since = "" if span == "all" else parse_since(f"{span}d")
    told = list[str]()
    for by in (SumGroup.DAY, SumGroup.ISSUE, SumGroup.MODEL):
        sums = read_report(find_ledger(weeks.machine.settings), by, since, "", told.append)
        assert format_price(add_up(sums)) in text
        assert all(format_price(one) in text for one in sums)
        assert all(shorten_count(one.tokens.output) in text for one in sums)
    assert not told


def test_what_has_no_price_is_unknown_and_never_nothing(weeks: Project, browser: Browser) -> None:
    costs = read_json(browser, "?span=all")["costs"]["model"]
    [found] = [one for one in costs if one["name"] == "model-without-a-price"]
    assert (found["price"], found["shown"]) == (None, "unknown")
    charts = list_charts(browser, "?span=all")
    [words] = [words for path, words in charts.items() if "/cost-model.svg" in path]
    assert "model-without-a-price unknown" in words
    file = browser.get("/page/numbers/cost-model.csv?span=all").text
    [row] = [one for one in csv.DictReader(io.StringIO(file)) if one["price"] == ""]
    assert row["model"] == "model-without-a-price"


def test_sums_that_are_not_whole_are_marked(weeks: Project, browser: Browser) -> None:
    assert "≥$" in Read(browser.get("/page/numbers").text).text
    journal.name_previous(weeks.root.journal).touch()
    later = Browser(make_server(weeks.machine))
    text = Read(later.get("/page/numbers?span=90").text).text
    assert "is not in the journal any more" in text
    assert re.search(r"Merged\s*≥\d", text)
    assert not re.search(r"Merged\s*≥\d", Read(later.get("/page/numbers?span=7").text).text)


def test_the_address_chooses_span_and_project(weeks: Project, browser: Browser) -> None:
    whole, part, other = (
        read_json(browser, f"?span=all&project={name}") for name in ("", weeks.name, "web.shop")
    )
    for field in ("merged", "ci_attempts", "agent_s", "review_s"):
        sums = [round(sum(day[field] for day in one["days"])) for one in (whole, part, other)]
        assert abs(sums[0] - sums[1] - sums[2]) <= 1
        assert min(sums) > 0
    days = [day["day"] for day in read_json(browser, "?span=7")["days"]]
    assert days
    assert min(map(str, days)) >= parse_since("7d")
    assert read_json(browser, "?span=x;DROP")["since"] == read_json(browser, "?span=30")["since"]
    assert read_json(browser, "?project=nobodys")["days"] == []


@pytest.mark.parametrize(
    ("hours", "says"),
    [(0.002, "agent 7.2 s"), (0.04, "agent 2.4 min"), (1.5, "agent 1.5 h")],
)
def test_a_short_time_is_shown_in_a_small_unit(
    project: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch, hours: float, says: str
) -> None:
    day = time.localtime()[:3]
    clock = time.mktime((*day, 9, 0, 0, 0, 0, -1))  # or it is of two days at times
    monkeypatch.setattr(time, "time", lambda: clock)
    project.record(events.Started(session="dev-harb-3", title="Add a checkout"))
    clock += hours * 3600
    project.record(events.StepDone(session="dev-harb-3", verb=StepVerb.FORGET))
    [words] = [words for path, words in list_charts(browser).items() if "/time.svg" in path]
    assert says in words


def test_each_picture_is_nothing_but_a_picture(weeks: Project, browser: Browser) -> None:
    charts = list_charts(browser)
    assert len(charts) == 9
    for path, words in charts.items():
        assert len(words) > 20
        for query in (path, f"{path}&narrow=1"):
            answer = browser.get(query)
            assert answer.headers["content-type"] == "image/svg+xml"
            assert answer.headers["content-security-policy"] == POLICY
            check_picture(answer.content)


def check_picture(file: bytes) -> None:
    """It has shapes, words and our one style; no address of anything, and nothing that runs."""
    elements = list(ElementTree.fromstring(file).iter())
    names = {element.tag.rpartition("}")[2] for element in elements}
    assert names <= {"svg", "style", "defs", "g", "path", "rect", "text", "tspan"}
    assert [element.text for element in elements if element.tag.endswith("style")] == [STYLE]
    attributes = {name for element in elements for name in element.attrib}
    assert not {name for name in attributes if name.startswith("on") or "href" in name}
    assert "style" not in attributes
    assert b"url(" not in file
    assert b"http" not in file.replace(b"http://www.w3.org/2000/svg", b"")


def test_the_policy_allows_our_style_alone() -> None:
    assert "unsafe" not in POLICY
    assert "script-src" not in POLICY  # so that of default-src holds
    assert POLICY.startswith("default-src 'none'; style-src 'sha256-")


def test_words_of_others_stay_words(project: Project, ledger: Path, browser: Browser) -> None:
    spend(ledger, [use(1, time.time(), project=HOSTILE, model=HOSTILE)])
    ensure_private_dir(project.root.private)
    session = f"dev-{HOSTILE}-1"
    journal.record(project.root.journal, events.Claimed(session=session))
    merged = events.StepDone(session=session, verb=StepVerb.FORGET, row="merged")
    journal.record(project.root.journal, merged)
    html = browser.get("/page/numbers?span=all").text
    read = Read(html)
    assert [a.get("src") for tag, a in read.elements if tag == "script"] == [
        "/page/static/htmx.min.js",
        "/page/static/page.js",
        "/page/static/forms.js",
    ]
    assert "\u202e" not in html
    assert "\x1b" not in html
    charts = list_charts(browser, "?span=all")
    assert {path.partition("?")[0] for path in charts} >= {"/page/numbers/cost-issue.svg"}
    for path in charts:
        check_picture(browser.get(path).content)
    assert browser.get(f"/page/numbers?{urlencode({'project': HOSTILE})}").status_code == 200


def test_a_damaged_ledger_leaves_the_rest(weeks: Project, ledger: Path, browser: Browser) -> None:
    for file in ledger.parent.glob("ledger.db*"):
        file.unlink()
    ledger.write_bytes(b"no database " * 100)
    text = Read(browser.get("/page/numbers").text).text
    assert "What it cost cannot be read" in text
    assert "Time by day" in text


def test_the_days_as_a_file(weeks: Project, browser: Browser) -> None:
    answer = browser.get("/page/numbers/days.csv?span=all")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    days = read_json(browser, "?span=all")["days"]
    assert [row["day"] for row in rows] == [day["day"] for day in days]
    assert [float(row["agent_s"]) for row in rows] == [day["agent_s"] for day in days]


@pytest.mark.parametrize("name", ["no.svg", "no.csv", "cost-nobody.csv", "days.xml"])
def test_what_is_not_there_is_not_found(browser: Browser, name: str) -> None:
    assert browser.get(f"/page/numbers/{name}").status_code == 404


@pytest.mark.parametrize("path", ["", "/numbers.json", "/days.csv", "/cost.svg"])
def test_who_may_not_read_the_page_may_not_read_its_numbers(weeks: Project, path: str) -> None:
    browser = Browser(make_server(weeks.machine, token=TOKEN))
    assert browser.get(f"/page/numbers{path}").status_code == 401
    allowed = browser.get(f"/page/numbers{path}", authorization=f"Bearer {TOKEN}")
    assert allowed.status_code == 200


@pytest.mark.parametrize("unit", Unit)
def test_any_bar_can_be_drawn(unit: Unit) -> None:
    yes_or_no = (True, False)
    for across, value, narrow in product(yes_or_no, (1e-4, 0.5, 1.0, 123456789.0), yes_or_no):
        chart = Chart(
            name="x",
            title="x",
            unit=unit,
            labels=("a", "b\x00\ud7ff"),
            series=(Series("one", (value, None)), Series("two", (None, None))),
            tells="",
            across=across,
        )
        check_picture(draw(chart, narrow=narrow))


def test_what_is_made_of_the_numbers_holds_up_nobody(
    weeks: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in = []

    def note(shown: ShownNumbers) -> list[Chart]:
        made_in.append(threading.current_thread())
        return charts.list_charts(shown)

    monkeypatch.setattr(page, "list_charts", note)
    assert browser.get("/page/numbers").status_code == 200
    assert browser.get("/page/numbers/cost.svg").status_code == 200
    assert len(made_in) == 2
    assert threading.main_thread() not in made_in
