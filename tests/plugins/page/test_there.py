"""A session that runs elsewhere, on the page: seen by what its node says, steered by its `sm`."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from msgspec import to_builtins

from sm.base.need import NeedKind
from sm.issues import placements
from sm.issues.rules.needs import Case
from sm.issues.runners import NodeRow, Placement, Standing
from sm.messages.send import QueuedMessage
from sm.plugins import find_plugins
from sm.plugins.hosts.messages.outbox import list_kept
from sm.plugins.hosts.there import There
from sm.plugins.page.terminal.remote_screen import spell_relay
from sm.plugins.page.terminal.words import OverError
from sm.sessions.activity import Evidence, Proof
from sm.sessions.project import Project
from sm.views.open_need import OpenNeed
from sm.views.session_row import SessionRow, tell_status
from sm.views.states import ShownState
from sm.views.trace import Story, StoryEvent, Summary
from tests.acts.commands import read_act
from tests.issues import farm as farms
from tests.issues.farm import Farm, use_farm
from tests.plugins.page.client import Browser

PLACED = Placement("harb", 7, "dev-harb-7", "farm", "one", 1, "c" * 40, "dev-harb-7.1", 1.0)
PATH = f"/page/session/{PLACED.session}"
TEXT = f"/page/terminal/{PLACED.session}/text"


def make_row(**changed: object) -> SessionRow:
    case = Case("escalate", "harb#7", reason="which colour?")
    need = OpenNeed(key="k", kind=NeedKind.QUESTION, text="", case=case)
    values: dict[str, object] = {
        "id": PLACED.session,
        "name": "harb#7",
        "project": "harb",
        "issue": 7,
        "title": "Add a file",
        "state": ShownState.WORKING,
        "begun_at": time.time() - 50,
        "cwd": "/there",
        "proof": Proof(Evidence.PROCESS, 1.0, "7"),
        "need": need,
        "percent": 42.0,
        "queued": 2,
        "words": "I have <b>looked</b>.",
        "documents": True,
        "told": False,
    }
    return SessionRow(**(values | changed))  # type: ignore[arg-type]


@pytest.fixture
def farm(tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch) -> Farm:
    use_farm(tmp_path, monkeypatch, find_plugins)
    farms.RUNNER.say(PLACED, Standing.RUNNING)
    placements.keep(project.directory, PLACED)
    show_row(make_row())
    return farms.RUNNER


def show_row(row: SessionRow, trouble: str = "") -> None:
    at = time.time() - 5
    shown = NodeRow(to_builtins(tell_status(row, at)), at, trouble)
    farms.RUNNER.shown = {PLACED.session: shown}


def answer(farm: Farm, code: int, said: str = "") -> None:
    (farm.folder / "one" / "answer").write_text(f"{code} {said}")


def test_its_row_and_page_say_where_it_runs_and_what_its_node_says(
    farm: Farm, browser: Browser
) -> None:
    for path, *words in (
        ("/", ">on one<", "2 messages wait"),
        (PATH, "<dt>Runs on</dt><dd>one</dd>", "2 waiting", "I have &lt;b&gt;looked&lt;/b&gt;."),
    ):
        page = browser.get(path).text
        for shown in (*words, "42 %"):
            assert shown in page
    assert not farm.list_calls(), "no page waits for a node"


def test_its_parts_are_asked_of_its_node(farm: Farm, browser: Browser) -> None:
    entry = StoryEvent(1.0, 0.0, "started", "", "took <i>it</i> on")
    story = Story(PLACED.session, (entry,), Summary("still at work", 1.0, 1, 0, 0, 0))
    answer(farm, 0, json.dumps(to_builtins(story)))
    assert "took &lt;i&gt;it&lt;/i&gt; on" in browser.get(f"{PATH}/story").text
    one = QueuedMessage(
        id="a",
        place="waiting",
        mode="sequential",
        age_s=3.0,
        sender="",
        first_line="hello",
        characters=5,
    )
    answer(farm, 0, json.dumps([to_builtins(one)]))
    assert "hello" in browser.get(f"{PATH}/messages").text
    answer(farm, 0, "the \x1b[31mscreen")
    screen = browser.get(TEXT).text
    assert "screen</pre>" in screen
    assert "\x1b" not in screen
    answer(farm, 0, "this is no JSON")
    assert "is it the same version?" in browser.get(f"{PATH}/story").text


def test_a_node_that_does_not_answer_is_said_and_its_page_is_there(
    farm: Farm, browser: Browser
) -> None:
    farm.lose("one")
    show_row(make_row(), "host 'one' does not answer")
    browser.log_in()
    page = browser.get(PATH)
    assert page.status_code == 200
    assert "which was heard last" in page.text
    for path in (f"{PATH}/story", f"{PATH}/messages", TEXT):
        assert "t does not answer" in browser.get(path).text
    assert browser.act(act="kill", session=PLACED.session).status_code == 409
    said = browser.act(act="send", session=PLACED.session, text="only the cart")
    assert "queued: its host &#39;one&#39; does not answer" in said.text
    shown = browser.get(f"{PATH}/messages").text
    assert "only the cart" in shown
    assert "has not taken it yet" in shown


def test_it_is_steered_by_its_nodes_own_sm(farm: Farm, browser: Browser, project: Project) -> None:
    browser.log_in()
    page = browser.get(PATH).text
    offered = list(dict.fromkeys(re.findall(r'name="act" value="([^"]+)"', page)))
    assert offered == ["reply", "send", "pause", "cycle", "recover", "kill"]
    about = {"session": PLACED.session, "project": "harb", "number": "7"}
    for act, call in (
        ("reply", r"reply --id [0-9a-z.-]+ harb 7 -"),
        ("pause", "pause harb#7"),
        ("resume", "resume harb#7"),
        ("cycle", "cycle harb#7"),
        ("recover", "recover harb 7"),
        ("kill", "kill harb 7"),
    ):
        said = browser.act(act=act, text="blue", **about)
        assert said.status_code == 200, said.text
        assert re.search(call, said.text)
    answer(farm, 1, "sm: there is no question\n")
    assert "here is no question" in browser.act(act="reply", text="x", **about).text
    assert not list_kept(project.directory)
    show_row(make_row(paused=True))
    assert "Resume …" in browser.get(PATH).text


def test_a_limit_there_is_raised_there(farm: Farm, browser: Browser) -> None:
    raises = read_act("sm budget raise harb 7 AMOUNT")
    case = Case("limit-asked", "harb#7", limit="5 of 5 USD", raises=raises)
    need = OpenNeed(key="b", kind=NeedKind.BUDGET, text="", case=case)
    show_row(make_row(need=need))
    browser.log_in()
    page = browser.read_needs()
    (limit,) = re.findall(r'name="limit" value="([^"]+)"', page.partition('class="answers"')[2])[:1]
    said = browser.act(act="budget-raise", session=PLACED.session, limit=limit, text="5")
    assert said.status_code == 200, said.text
    assert farm.list_calls()[-1] == "call budget raise harb 7 5 < "


def test_who_has_not_logged_in_may_look_and_not_act(farm: Farm, browser: Browser) -> None:
    assert browser.act(act="kill", session=PLACED.session).status_code == 401
    assert 'name="act"' not in browser.get(PATH).text
    assert not farm.list_calls()


def test_a_runner_that_passes_no_pipes_on_has_it_shown_as_text(
    farm: Farm, project: Project
) -> None:
    with pytest.raises(OverError) as over:
        spell_relay(There(project, PLACED))
    assert (over.value.what, over.value.why) == ("plain", "the runner 'farm' cannot show it live")
    assert not farm.list_calls()
