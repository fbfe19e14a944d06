"""What the page shows, and that the words of others stay words."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time

import pytest
from msgspec import structs

from sm.base.act import Act, ActKind, run
from sm.base.need import NeedKind
from sm.plugins.page import app, renderer
from sm.plugins.page.access import Visitor
from sm.plugins.page.board_page import Choice, Sort, answer_needs, choose_rows
from sm.plugins.page.board_reader import BoardReader
from sm.plugins.page.renderer import find_safe_link, render
from sm.sessions.activity import Evidence
from sm.sessions.project import Project
from sm.store import events, journal
from sm.views.board import Board, WatchedBoard
from sm.views.figures import Figure, list_headers
from sm.views.open_need import OpenNeed
from sm.views.projects import Configured
from sm.views.session_row import Mark
from sm.views.states import ShownState
from tests.helpers import put_session
from tests.plugins.page.client import NEED, Browser, Read

PUBLISHED = {
    "xterm.mjs": "b336ec65a086c056d4804b3d4c2347da5663d3f23c3f25be866467bd8857ad59",
    "xterm.css": "854a7c0fb70e8b1a083c16797ab827299fb18744f5ad34f227b48337e33293c6",
    "xterm.LICENSE": "b569f629d00f2626a8100df2a1798210535621e42164dfd426a6fe5aac7b0ccd",
}
"""SHA-256 of the library, its styles and its licence in @xterm/xterm 6.0.0, from there, too."""
HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
"""SHA-256 of dist/htmx.min.js in htmx.org 2.0.11, as the npm registry has it."""

HOSTILE = (
    "</li></textarea></title><script>alert(1)</script><img src=x onerror=alert(1)>"
    "\" onfocus=alert(1) autofocus x=' {{ 123457 * 7 }} &lt;b&gt; \x1b[31m\u202egnp.exe\u200b\x00"
)


def test_the_files_of_others_are_as_they_were_published() -> None:
    assert hashlib.sha256((app.STATIC / "htmx.min.js").read_bytes()).hexdigest() == HTMX
    for name, digest in PUBLISHED.items():
        assert hashlib.sha256((app.STATIC / name).read_bytes()).hexdigest() == digest, name
    assert (app.STATIC / "htmx.LICENSE").read_text().startswith("Zero-Clause BSD")


def test_what_needs_a_person_comes_first_with_its_answer(review: Project, browser: Browser) -> None:
    assert review
    browser.log_in()
    page = browser.get("/").text
    assert page.index("Needs you") < page.index('id="rows"')
    needs = browser.read_needs()
    assert "Approves pull request 24 at 000000000000" in needs
    for word in ("approve", "request-changes"):
        assert f'name="act" value="{word}"' in needs
    assert f'name="head" value="{24:040x}"' in needs


def test_who_has_not_logged_in_sees_the_command_instead(review: Project, browser: Browser) -> None:
    assert review
    page = browser.read_needs()
    assert "sm review harb#24 --approve" in page
    assert 'class="offer' not in page


@pytest.mark.parametrize("logs_in", [True, False])
def test_what_is_reviewed_on_the_forge_leads_there(
    review: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch, logs_in: bool
) -> None:
    address = "https://forge.example.com/a/b/pulls/24"
    monkeypatch.setattr(type(review.settings.forge), "reviewer", None)
    monkeypatch.setattr(type(review.settings.forge), "link_pull", lambda *_: address)
    if logs_in:
        browser.log_in()
    needs = browser.read_needs()
    assert needs.count(f'href="{address}"') == 1
    assert "Review it on the forge" in needs
    assert "In a terminal" not in needs
    assert "sm review" not in needs
    assert 'value="approve"' not in needs


def test_filters_hold_for_needs_and_sessions_and_say_what_they_leave_out(
    review: Project, browser: Browser
) -> None:
    put_session(review, 4, "Mend the cart")
    keys = re.compile(r'<tr class="in-[^>]*data-key="([^"]+)"')
    assert keys.findall(browser.get("/").text) == ["dev-harb-3", "dev-harb-4"]
    for query, shown, left_out in (
        ("q=CART", ["dev-harb-4"], 1),
        ("q=review", ["dev-harb-3"], 0),
        ("group=needs", ["dev-harb-3"], 0),
        ("group=working", ["dev-harb-4"], 0),
        ("kind=review", ["dev-harb-3", "dev-harb-4"], 0),
        ("kind=ci", ["dev-harb-3", "dev-harb-4"], 1),
        ("project=other", [], 1),
        ("host=one", [], 1),
        ("group=none&sort=none", ["dev-harb-3", "dev-harb-4"], 0),
    ):
        page = browser.get(f"/?{query}").text
        assert keys.findall(page) == shown, query
        assert f'<span class="number">{left_out}</span> more left out by the filter' in page
        assert len(NEED.findall(page)) == 1 - left_out
        assert '<p id="no-needs" class="calm" hidden>' in page
        assert "<title>(1) sm</title>" in page


def test_changes_are_the_rows_that_the_journal_tells_of(review: Project, browser: Browser) -> None:
    session = put_session(review, 4)
    position = journal.find_size(review.root.journal)
    journal.record(review.root.journal, events.Monitor(session=session.name, state="started"))
    found = browser.get(f"/page/changes?since={position}").text
    assert 'data-key="dev-harb-4"' in found
    assert 'data-key="dev-harb-3"' not in found
    assert 'data-order="group-needs dev-harb-3 group-working dev-harb-4"' in found
    end = journal.find_size(review.root.journal)
    assert f'data-position="{end}"' in found
    assert '<tr class="in-' not in browser.get(f"/page/changes?since={end}").text
    assert (
        'data-key="dev-harb-3"' in browser.get(f"/page/changes?since={end}&session=dev-harb-3").text
    )


def test_needs_are_sent_again_only_when_they_have_changed(
    review: Project, browser: Browser
) -> None:
    first = browser.get("/page/changes?since=").text
    version = re.findall(r'data-version="([^"]+)" data-total', first)[0]
    assert len(NEED.findall(first)) == 1
    again = browser.get(f"/page/changes?since=&needs={version}").text
    assert 'id="needs"' not in again
    assert 'data-total="1"' in again
    browser.log_in()  # its forms are other ones
    assert len(NEED.findall(browser.get(f"/page/changes?since=&needs={version}").text)) == 1


def test_an_answer_is_compressed_for_who_takes_that(review: Project, browser: Browser) -> None:
    assert review
    for taken, is_compressed in (("gzip", True), ("identity", False)):
        answer = browser.ask("GET", "/", {"accept-encoding": taken})
        assert ("content-encoding" in answer.headers) is is_compressed


@pytest.mark.parametrize("first", [True, False], ids=["before-the-look", "behind-it"])
def test_what_happens_while_changes_are_read_is_never_passed_over(
    review: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    session = put_session(review, 4)
    since, read = journal.find_size(review.root.journal), BoardReader.read

    def happen() -> None:
        review.record(events.Monitor(session=session.name, state="started"))

    def read_meanwhile(looks: BoardReader) -> tuple[Board, int]:
        if first:
            happen()
        found = read(looks)
        if not first:
            happen()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(BoardReader, "read", read_meanwhile)
        found = browser.get(f"/page/changes?since={since}").text
    position = re.search(r'data-position="(\d+)"', found)
    assert position
    later = browser.get(f"/page/changes?since={position[1]}").text
    assert "monitor started" in (found if first else later)


def test_what_was_being_read_as_it_changed_is_read_again(
    review: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, made = BoardReader(review.machine), put_session(review, 4)
    read = WatchedBoard.read_configured
    monkeypatch.setattr("sm.plugins.page.board_reader.FRESH_S", math.inf)

    def change_meanwhile(board: WatchedBoard, configured: Configured) -> Board:
        found = read(board, configured)
        made.dir.usage.write_text(f"{time.time():.6f} - 41.5 200000 - - - - 83000\n")
        made.dir.usage.chmod(0o600)
        looks.spoil()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(WatchedBoard, "read_configured", change_meanwhile)
        row = looks.read()[0].find(made.name)
        assert row
        assert row.percent is None
    row = looks.read()[0].find(made.name)
    assert row
    assert row.percent == 41.5
    assert looks.read()[0] is looks.read()[0], "and then no more"


def _check_harmless(html: str) -> None:
    """Nothing of the words has become an element, an attribute, or a sign that hides."""
    read = Read(html)
    for tag, attributes in read.elements:
        assert tag != "img"
        assert not any(name.startswith("on") for name in attributes), attributes
        assert tag != "script" or (attributes.get("src") or "").startswith("/page/static/")
        for name in ("href", "src", "action"):
            assert not (attributes.get(name) or "").lower().startswith(("javascript:", "data:"))
    assert "864199" not in read.text
    for sign in ("\x1b", "\u202e", "\u200b", "\x00"):
        assert sign not in html


def test_no_field_of_a_row_or_a_need_becomes_html(
    project: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_session(project, 3, HOSTILE)
    browser.log_in()
    [row] = BoardReader(project.machine).read()[0].rows
    texts = {
        name: HOSTILE
        for name, value in structs.asdict(row).items()
        if isinstance(value, str) and name not in ("id", "state")
    }
    need = OpenNeed(
        key=HOSTILE,
        kind=NeedKind.QUESTION,
        project=HOSTILE,
        issue=3,
        session=row.id,
        name=HOSTILE,
        title=HOSTILE,
        since=time.time(),
        text=HOSTILE,
        act=Act(ActKind.REPLY, "harb", 3),
        link="javascript:alert(1)",
        whole=HOSTILE,
    )
    figures = {name: Figure(HOSTILE) for name in list_headers()}
    more = {"need": need, "fixes": 2, "percent": 41.0, "figures": figures}
    hostile = structs.replace(row, **texts | more)
    board = Board(
        at=time.time(),
        needs=(need, structs.replace(need, key="2", act=run(HOSTILE))),
        rows=(hostile,),
        seen={HOSTILE: 1.0, "b": 2.0},
        paused=(HOSTILE,),
        problems=(HOSTILE,),
    )
    monkeypatch.setattr(WatchedBoard, "read", lambda *_: board)
    for path in ("/", "/page/changes", f"/page/session/{row.id}"):
        page = browser.get(path).text
        assert "alert(1)" in page
        _check_harmless(page)
    whole = browser.read_needs()
    assert "<p>&lt;/li&gt;&lt;/textarea&gt;" in whole
    _check_harmless(whole)


def test_figures_of_plugins_stand_beside_the_title(
    project: Project, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for issue in (3, 4):
        put_session(project, issue)
    first, second = BoardReader(project.machine).read()[0].rows
    figures = {"cost": Figure("$1.20"), "of a plugin that is gone": Figure("?")}
    board = Board(at=time.time(), rows=(structs.replace(first, figures=figures), second))
    monkeypatch.setattr(WatchedBoard, "read", lambda *_: board)
    card = '<dl class="figures">\n<div><dt>Cost</dt><dd>$1.20</dd></div></dl>'
    for path, shown, count in (
        ("/", '<td class="figures"><span title="Cost">$1.20</span>', 1),
        (f"/page/session/{first.id}", card, 1),
        (f"/page/session/{second.id}", "Cost", 0),
    ):
        assert browser.get(path).text.count(shown) == count


def test_no_message_or_event_becomes_html(project: Project, browser: Browser) -> None:
    session = put_session(project, 3, HOSTILE)
    journal.record(project.root.journal, events.Problem(session=session.name, text=HOSTILE))
    said = {"last_assistant_message": HOSTILE}
    session.dir.stop_payload.write_text(json.dumps(said))
    session.dir.stop_payload.chmod(0o600)
    browser.log_in()
    for path in ("/", "/page/session/dev-harb-3", "/page/session/dev-harb-3/story"):
        page = browser.get(path).text
        assert "alert(1)" in page
        _check_harmless(page)


def test_no_error_becomes_html(project: Project, browser: Browser) -> None:
    assert project
    browser.log_in()
    _check_harmless(browser.get(f"/page/session/{HOSTILE.replace('/', '')[:60]}").text)
    for fields in (
        {"act": "pause", "session": HOSTILE},
        {"act": "reply", "project": HOSTILE, "number": "3"},
        {"act": HOSTILE},
        {"act": "kill", "session": "dev-harb-9"},
    ):
        answer = browser.act(**fields)
        assert answer.status_code in (400, 404, 409)
        _check_harmless(answer.text)


@pytest.mark.parametrize(
    ("link", "kept"),
    [
        ("https://forge.example/pull/1", True),
        ("http://forge.example/pull/1", True),
        ("javascript:alert(1)", False),
        (" javascript:alert(1)", False),
        ("//evil.example", False),
        ("data:text/html,x", False),
        ("", False),
    ],
)
def test_only_links_to_pages_are_links(link: str, kept: bool) -> None:
    assert find_safe_link(link) == (link if kept else "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("there is no such session any more", "There is no such session any more."),
        ("harb#3 is over", "harb#3 is over."),
        ("'ann' is not there: try again!", "'ann' is not there: try again!"),
        ("no", "No."),
    ],
)
def test_an_error_stands_on_a_page_as_a_sentence(words: str, said: str) -> None:
    assert f">{said}<" in render(
        "problem.html", visitor=Visitor(may_read=True, may_act=True), why=words
    ).replace("&#39;", "'")


def test_a_missing_page_is_not_called_a_failure(browser: Browser) -> None:
    for path in ("/page/nothing", "/page/session/dev-harb-77"):
        answer = browser.get(path)
        assert answer.status_code == 404
        assert "<h1>Not found</h1>" in answer.text


def test_every_template_escapes_by_itself() -> None:
    assert renderer._environment().autoescape is True
    for path in renderer.TEMPLATES.iterdir():
        text = path.read_text()
        assert "|safe" not in text.replace(" ", "").replace("|safe_link", "")
        assert "autoescape" not in text
        assert " style=" not in text
    assert render("outcome.html", why="<b>", done=True) == '<p class="done" data-done>&lt;b&gt;</p>'


def test_the_track_is_told_to_a_screen_reader(review: Project, browser: Browser) -> None:
    assert review
    text = "".join(Read(browser.get("/").text).text.split())
    assert "work:doneCI:donereview:underwaymerge:notyet" in text
    assert {*Mark} == {*renderer.MARKS}
    assert {*Evidence} == {*renderer.PROOFS}


def test_sessions_stand_by_group_and_within_it_as_a_person_likes(
    review: Project, browser: Browser
) -> None:
    assert review
    (asks,) = BoardReader(review.machine).read()[0].rows
    calm = structs.replace(asks, need=None, state=ShownState.WORKING)
    rows = (
        structs.replace(calm, id="b", issue=10, percent=80.0, begun_at=5.0, state_since=9.0),
        structs.replace(calm, id="a", issue=9, percent=10.0, begun_at=6.0, state_since=8.0),
        structs.replace(calm, id="lost", issue=1, state=ShownState.CRASHED),
        structs.replace(calm, id="refused", issue=2, problem="refused"),
        structs.replace(calm, id="merged", issue=4, state=ShownState.MERGED, problem="late"),
        structs.replace(calm, id="rests", issue=5, state=ShownState.PARKED),
        asks,
    )
    board = Board(at=1.0, rows=rows)

    def show(sort: Sort) -> list[str]:
        return [row.id for row in choose_rows(board, Choice(sort=sort))]

    assert show(Sort.NAME) == [asks.id, "lost", "refused", "a", "b", "rests", "merged"]
    assert show(Sort.CONTEXT)[3:5] == ["b", "a"]
    assert show(Sort.BEGUN)[3:5] == ["b", "a"]
    assert show(Sort.SINCE)[3:5] == ["a", "b"]


def test_a_link_to_a_session_that_has_given_up_leads_to_its_blocked_issue() -> None:
    machine = OpenNeed(key="m", kind=NeedKind.POLL, text="")
    blocked = structs.replace(machine, key="b", project="my.shop", issue=7)
    other = structs.replace(blocked, key="o", session="dev-my_shop-7")
    found = [one.anchor for one in answer_needs(Board(at=0.0, needs=(machine, blocked, other)))]
    assert found == ["", "need-dev-my_shop-7", ""]
