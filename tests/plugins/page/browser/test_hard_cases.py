"""What goes wrong while a page is open: it says so, loses nothing, and goes on by itself."""

from __future__ import annotations

import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from sm.adapters.forge.model import CheckState
from sm.adapters.tmux_start import start_session
from sm.sessions.history import StepVerb
from sm.store import events
from sm.views.family import find_people
from tests.e2e.stage import started
from tests.helpers import a_pull, an_issue, put_session, put_snapshot, wait_for
from tests.plugins.page.browser.conftest import MakeSite, Site
from tests.plugins.page.browser.states import OVER, fill
from tests.plugins.page.browser.test_axe import open_all
from tests.plugins.page.browser.test_journeys import show, wait_for_row
from tests.plugins.page.test_renderer import HOSTILE
from tests.serving import STARTED, serving
from tests.viewer import Viewer

pytestmark = pytest.mark.long_lived


PATIENCE_MS = 30_000
"""A page that was refused a stream looks so often at least."""
FOREIGN = "main img, main script:not([src^='/page/static/']), [onfocus], [onerror]"
"""What words of others would have become."""


@pytest.fixture
def site(site_of: MakeSite) -> Site:
    made = site_of()
    for issue in (3, 4):
        put_session(made.stage.project, issue, f"Mend it {issue}", alive=False)
    return made


def put_to_sleep(site: Site, page: Page, state: str = "frozen") -> None:
    """Freeze a tab, as a browser does with one that was long in the background."""
    site.window.new_cdp_session(page).send("Page.setWebLifecycleState", {"state": state})


def end(site: Site, issue: int) -> None:
    """Have the session be over, as the last step of one that is merged leaves it."""
    name = f"dev-harb-{issue}"
    project = site.stage.project
    shutil.rmtree(project.root.session(name).path)
    project.record(events.Decided(session=name, row="merged"))
    project.record(events.StepDone(session=name, verb=StepVerb.FORGET))


def fill_context(site: Site, issue: int) -> None:
    """Have its context be 41 % full, as the status line of its client writes it down."""
    usage = site.stage.session(issue).dir.usage
    usage.write_text(f"{time.time():.6f} - 41 200000 - - - - 82000\n")
    usage.chmod(0o600)


# Tabs that sleep


def test_another_tab_takes_over_from_one_that_is_frozen(site: Site) -> None:
    leader = site.open()
    other = site.window.new_page()
    other.clock.install()
    other.goto(site.server.url)
    expect(other.locator("body")).to_have_attribute("data-live", "on")
    assert other.evaluate("document.body.dataset.leads || ''") == ""
    put_to_sleep(site, leader)
    other.clock.fast_forward(20_000)
    expect(other.locator("body")).to_have_attribute("data-leads", "yes")
    show(site, 3)
    wait_for_row(other, 3, "monitor started")
    put_to_sleep(site, leader, "active")
    wait_for_row(leader, 3, "monitor started")
    expect(leader.locator("body")).not_to_have_attribute("data-leads", "yes")
    show(site, 4)
    for page in (leader, other):
        wait_for_row(page, 4, "monitor started")


def test_a_tab_that_has_slept_knows_what_it_has_missed(site: Site, tmp_path: Path) -> None:
    page = site.open()
    put_to_sleep(site, page)
    show(site, 3)
    site.server.stop(signal.SIGKILL)
    show(site, 4)
    port = ("--port", str(site.server.port))
    with serving(tmp_path, *port, base=site.stage.environment, clean=False, program=STARTED):
        put_to_sleep(site, page, "active")
        wait_for_row(page, 3, "monitor started")
        wait_for_row(page, 4, "monitor started")
        expect(page.locator("body")).to_have_attribute("data-live", "on")
        page.goto("about:blank")


def test_without_a_stream_the_page_looks_by_itself(site: Site) -> None:
    refused: list[Route] = []

    def refuse(route: Route) -> None:
        refused.append(route)
        route.fulfill(status=503, body="too many")

    page = site.window.new_page()
    page.clock.install()
    page.route("**/page/stream*", refuse)
    page.goto(site.server.url)
    expect(page.locator("#live")).to_have_text("not connected")
    for issue in (3, 4):
        show(site, issue)
        page.clock.fast_forward(PATIENCE_MS)
        wait_for_row(page, issue, "monitor started")
    assert len(refused) > 1
    fill_context(site, 3)  # which no event tells
    page.clock.fast_forward(PATIENCE_MS)
    wait_for_row(page, 3, "41 %")
    page.unroute("**/page/stream*")
    page.clock.fast_forward(PATIENCE_MS)
    expect(page.locator("#live")).to_have_text("live")


def test_a_look_that_fails_is_made_again(site: Site) -> None:
    page = site.open()
    failed: list[Route] = []

    def fail(route: Route) -> None:
        failed.append(route)
        route.fulfill(status=503, body="not now")

    page.route("**/page/changes*", fail, times=1)
    show(site, 3)
    wait_for_row(page, 3, "monitor started")
    assert failed


# Sessions and logins that end


def test_a_session_that_ends_while_it_is_watched_is_told_to_its_end(site: Site) -> None:
    site.log_in()
    page = site.open("/page/session/dev-harb-3")
    typing = site.open("/page/session/dev-harb-4")
    typing.locator("#letter-text").fill("Just one more thing")
    end(site, 3)
    expect(page.get_by_role("heading", name="It is over")).to_be_visible()
    expect(page.locator(".outcome")).to_contain_text("merged")
    end(site, 4)
    expect(typing.locator("#warning")).to_contain_text("It is over")
    assert typing.locator("#letter-text").input_value() == "Just one more thing"
    typing.locator("#letter button").click()
    expect(typing.locator("#said")).to_contain_text("no such session any more")
    typing.get_by_role("link", name="What is left of it").click()
    assert typing.locator("#letter-text").input_value() == "Just one more thing"


def test_what_was_typed_outlives_a_login(site: Site) -> None:
    site.log_in()
    page = site.open("/page/session/dev-harb-3")
    page.locator("#letter-text").fill("Only the cart")
    other = site.open()
    other.get_by_text("Logged in").click()
    other.get_by_role("button", name="Link for another browser").click()
    link = other.locator("code.link").inner_text()
    other.goto(site.server.url)
    other.get_by_text("Logged in").click()
    other.get_by_role("button", name="Log out").click()
    expect(other.get_by_text("Log in to act")).to_be_visible()
    page.locator("#letter button").click()
    expect(page.locator("#said")).to_contain_text("log in")
    show(site, 3)
    expect(page.locator("#warning")).to_contain_text("Your login is over")
    other.goto(link)
    other.get_by_role("button", name="Log in").click()
    other.wait_for_url(f"{site.server.url}/")
    show(site, 3, "stopped")
    expect(page.locator("#warning")).to_be_hidden()
    assert page.locator("#letter-text").input_value() == "Only the cart"
    page.locator("#letter button").click()
    expect(page.locator("#said")).not_to_contain_text("log in")
    expect(page.locator("#said")).not_to_contain_text("another login")


# Messages and links


def test_a_message_is_echoed_at_once_and_followed_to_its_receipt(site_of: MakeSite) -> None:
    site = site_of()
    issue = started(site.stage)
    site.log_in()
    page = site.open(f"/page/session/dev-harb-{issue}")
    held: list[Route] = []
    page.route("**/page/act", lambda route: held.append(route))
    page.locator("#letter-text").fill("Only the cart\nplease")
    with page.expect_request("**/page/act"):
        page.locator("#letter button").click()
    echo = page.locator("#messages li", has_text="Only the cart")
    expect(echo).to_contain_text("on its way")
    with page.expect_response("**/messages"):
        show(site, issue)
    expect(page.locator("#story")).to_contain_text("monitor started")
    expect(echo).to_contain_text("on its way")
    held[0].continue_()
    expect(echo.locator(".chip")).to_have_text(re.compile("^(typed|seen)$"))
    expect(echo).to_have_count(1)
    page.unroute("**/page/act")
    page.route("**/page/act", lambda route: route.abort())
    page.locator("#letter-text").fill("Never sent")
    page.locator("#letter button").click()
    expect(page.locator("#said")).to_contain_text("could not be sent")
    expect(page.locator("#messages li", has_text="Never sent")).to_have_count(0)
    assert page.locator("#letter-text").input_value() == "Never sent"


def test_a_link_leads_to_the_answer_and_a_settled_one_to_what_is_left(site: Site) -> None:
    fill(site)
    site.log_in()
    page = site.open("/#need-dev-harb-3")
    expect(page.locator("#need-dev-harb-3 textarea").first).to_be_focused()
    expect(page.locator("#settled")).to_be_hidden()
    page.goto("about:blank")
    page.goto(f"{site.server.url}/#need-dev-harb-4")
    expect(page.locator("#settled")).to_contain_text("is settled: dev-harb-4")
    page.goto("about:blank")
    page.goto(f"{site.server.url}/#need-{OVER}")
    expect(page.locator("#settled")).to_contain_text("is not here any more")
    page.locator("#settled a").click()
    expect(page.get_by_role("heading", name="It is over")).to_be_visible()


def test_a_review_that_waits_is_called_settled_by_nobody_who_types_in_its_terminal(
    site: Site,
) -> None:
    fill(site)
    session, tmux = site.stage.session(3), site.stage.project.tmux
    start_session(tmux, session.name, site.stage.folder, ["cat"])
    person = Viewer(tmux.attach_argv(session.name))

    def types() -> bool:
        person.type("\x1b")
        return bool(find_people(tmux, [session], time.time()))

    try:
        wait_for(types, "the keys to be known", every_s=0.3)
        site.log_in()
        page = site.open("/#need-dev-harb-3")
        expect(page.locator("#need-dev-harb-3")).to_be_visible()
        expect(page.locator("#settled")).to_be_hidden()
        expect(page.locator("#rows tr", has_text="harb#3")).to_contain_text(
            "a person is in its terminal"
        )
    finally:
        person.close()


def test_what_is_called_settled_is_not_once_it_waits_again(site: Site) -> None:
    fill(site)
    page = site.open("/#need-dev-harb-4")
    expect(page.locator("#settled")).to_be_visible()
    project = site.stage.project
    pulls = (a_pull(24, "fix/3", CheckState.SUCCESS), a_pull(25, "fix/4", CheckState.SUCCESS))
    put_snapshot(project, an_issue(3), an_issue(4), *pulls)
    site.stage.write_phase(4, "PHASE:awaiting_review")
    project.record(events.Problem(session="dev-harb-4", text="words"))
    expect(page.locator("#need-dev-harb-4")).to_be_visible()
    expect(page.locator("#settled")).to_be_hidden()


def test_a_login_in_between_loses_no_link(site: Site) -> None:
    fill(site)
    page = site.open("/#need-dev-harb-3")
    page.get_by_role("link", name="Log in to act").click()
    page.get_by_label("The key in the link").fill(site.link.partition("key=")[2])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{site.server.url}/#need-dev-harb-3")
    expect(page.locator("#need-dev-harb-3 textarea").first).to_be_focused()


def test_a_link_of_another_site_finds_the_login(site: Site) -> None:
    fill(site)
    link = f"{site.server.url}/#need-dev-harb-3"
    mail = f'<a href="{link}">answer</a>'
    site.window.route(
        "http://mail.example/", lambda route: route.fulfill(content_type="text/html", body=mail)
    )
    page = site.window.new_page()

    def come(header: str) -> None:
        page.goto("http://mail.example/")
        page.get_by_role("link", name="answer").click()
        expect(page.locator("header.top")).to_contain_text(header)
        assert page.url == link

    come("Log in to act")
    site.log_in()
    come("Logged in")


# Words of others


@pytest.mark.parametrize("words", [HOSTILE, "W" * 3000], ids=["hostile", "long"])
def test_no_words_of_others_run_hide_or_break_the_page(site: Site, words: str) -> None:
    shutil.rmtree(site.stage.project.root.session("dev-harb-3").path)
    shutil.rmtree(site.stage.project.root.session("dev-harb-4").path)
    fill(site, words)
    site.log_in()
    for path in ("/", "/page/session/dev-harb-3", f"/page/session/{OVER}"):
        page = site.window.new_page()
        page.on("dialog", lambda dialog: site.words.append(dialog.message))
        page.on("console", lambda said: site._hear(said.type, said.text))
        page.set_viewport_size({"width": 360, "height": 740})
        page.goto(site.server.url + path)
        open_all(page)
        assert page.locator(FOREIGN).count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        shown = page.locator("body").inner_text()
        assert words[:20] in shown
        assert not {"\x1b", "\u202e", "\u200b"} & set(shown)
        page.close()
