"""What the page says and takes is so: commits, taps, a server that is silent, the way back."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sm.adapters.forge.model import PullState, ReviewState
from sm.sessions.project import Project
from sm.store import events
from tests.helpers import wait_for
from tests.plugins.page.browser.conftest import MakeSite, Site, reach
from tests.plugins.page.offered import look, offer, push

pytestmark = pytest.mark.long_lived

PICTURES = os.environ.get("SM_TEST_PICTURES", "")
SILENT_MS = 41_000
LATE_MS = 31_000
NO_CI = {"poll": "1h"}


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def tell(project: Project, issue: int) -> None:
    """Have a page look: something has happened in that session."""
    look(project)
    project.record(events.Monitor(session=f"dev-{project.name}-{issue}", state="started"))


@pytest.mark.parametrize("width", [1440, 360])
def test_a_push_while_a_person_reads_outdates_changes_and_form_together(
    site_of: MakeSite, width: int
) -> None:
    site = site_of(width=width, merge={"by": "sm"}, ci=NO_CI)
    project = site.stage.project
    issue, number = offer(project)
    site.log_in()
    page = site.open()
    need = page.locator("#needs > li")
    desk = need.locator(".desk")
    first = project.forge.pulls.read_head(number)
    reach(need).get_by_text("What it changes").click()
    expect(need.locator(".change .added")).to_contain_text("first")
    need.get_by_label("A word on it").fill("Good")
    picture(page, f"desk-{width}")
    second = push(project, issue, "not seen\n")
    tell(project, issue)
    expect(need.locator(".moved")).to_contain_text("1 new commit: show it")
    picture(page, f"outdated-{width}")
    expect(desk).to_have_attribute("data-head", first)
    expect(need.get_by_role("button", name="Approve")).to_be_disabled()
    expect(need.locator(".change .added")).to_contain_text("first")
    page.evaluate("document.querySelector('.desk form').requestSubmit()")
    need.get_by_role("button", name="show it").click()
    expect(desk).to_have_attribute("data-head", second)
    expect(need.locator(".change")).to_contain_text("not seen")
    assert need.get_by_label("A word on it").input_value() == "Good"
    assert not project.forge.pulls.read(number).reviews
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    need.get_by_role("button", name="Approve").click()
    expect(page.locator(".answered")).to_contain_text(f"at {second[:12]}")
    [review] = project.forge.pulls.read(number).reviews
    assert (review.head, review.body) == (second, "Good")


def test_a_push_that_no_look_has_seen_is_refused_with_a_way_to_see_it(site_of: MakeSite) -> None:
    site = site_of(merge={"by": "sm"}, ci=NO_CI)
    project = site.stage.project
    issue, number = offer(project)
    site.log_in()
    page = site.open(f"/page/session/dev-{project.name}-{issue}#changes")
    need = page.locator("#needs > li")
    expect(need.locator(".change .added")).to_contain_text("first")
    second = push(project, issue, "not seen\n")
    need.get_by_role("button", name="Approve").click()
    expect(page.locator("#said")).to_contain_text("1 new commit in pull request")
    expect(need.locator(".moved")).to_contain_text("1 new commit: show it")
    pull = project.forge.pulls.read(number)
    assert (pull.state, pull.reviews) == (PullState.OPEN, ())
    need.get_by_role("button", name="show it").click()
    expect(need.locator(".change")).to_contain_text("not seen")
    expect(need.locator(".desk")).to_have_attribute("data-head", second)


def test_an_outdated_card_goes_when_somebody_else_has_decided(site_of: MakeSite) -> None:
    site = site_of(ci=NO_CI)
    project = site.stage.project
    issue, number = offer(project)
    site.log_in()
    page = site.open()
    need = page.locator("#needs > li")
    expect(reach(need).get_by_role("button", name="Approve")).to_be_enabled()
    second = push(project, issue, "not seen\n")
    tell(project, issue)
    expect(need.locator(".moved")).to_contain_text("1 new commit: show it")
    project.forge.pulls.review(number, ReviewState.APPROVED, author="bob", head=second)
    tell(project, issue)
    expect(need).to_have_count(0)


def open_with_clock(site: Site, path: str) -> Page:
    page = site.window.new_page()
    page.clock.install(time=time.time())
    page.goto(site.server.url + path)
    page.wait_for_selector("body[data-live=on]")
    return page


def find_button(page: Page) -> tuple[float, float]:
    """Where the button of the first need is on the screen."""
    button = page.locator("#needs > li").first.get_by_role("button", name="Approve")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize("width", [1440, 360])
def test_two_taps_at_one_place_answer_one_need(site_of: MakeSite, width: int) -> None:
    site = site_of(width=width, ci=NO_CI)
    project = site.stage.project
    (one, first), (_, second) = offer(project, "One"), offer(project, "Two")
    site.log_in()
    page = open_with_clock(site, "/")
    needs = page.locator("#needs > li")
    expect(needs).to_have_count(2)
    reach(needs.first)
    page.wait_for_selector("body:not([data-moved])")
    at = find_button(page)
    before = needs.nth(1).bounding_box()
    page.mouse.click(*at)
    expect(page.locator(".answered")).to_contain_text("approved #")
    tell(project, one)
    expect(page.locator("#needs-count")).to_have_text("1")
    page.mouse.click(*at)
    picture(page, f"answered-{width}")
    assert needs.nth(1).bounding_box() == before, "nothing has moved"
    assert project.forge.pulls.read(first).reviews
    page.remove_locator_handler(page.locator("body[data-moved]"))  # it would wait for the clock
    page.clock.pause_at(time.time() + 60)  # however slow this machine is
    page.get_by_role("button", name="Put away").click()
    expect(needs).to_have_count(1)
    line = needs.first.locator("summary.line").bounding_box()
    assert line
    page.mouse.click(line["x"] + 20, line["y"] + 10)
    expect(page.locator("#said")).to_contain_text("press again")
    expect(needs.first.locator("details[open]")).to_have_count(0)
    page.clock.resume()
    page.wait_for_selector("body:not([data-moved])")
    reach(needs.first)
    page.wait_for_selector("body:not([data-moved])")
    needs.first.get_by_role("button", name="Approve").click()
    wait_for(lambda: project.forge.pulls.read(second).reviews, "the second approval")


def test_a_silent_server_is_not_called_live_and_keeps_no_words(site_of: MakeSite) -> None:
    site = site_of(ci=NO_CI)
    project = site.stage.project
    issue, number = offer(project)
    site.log_in()
    page = open_with_clock(site, f"/page/session/dev-{project.name}-{issue}")
    live = page.locator("#live")
    site.server.process.send_signal(signal.SIGSTOP)
    try:
        page.get_by_label("A word on it").fill("Good")
        page.get_by_role("button", name="Approve").click()
        page.clock.fast_forward(LATE_MS)
        expect(page.locator("#said")).to_contain_text("No answer for 30 seconds")
        assert page.get_by_label("A word on it").input_value() == "Good"
        page.clock.fast_forward(SILENT_MS - LATE_MS)
        expect(live).to_contain_text("nothing heard since")
        expect(page.locator("body")).to_have_attribute("data-live", "off")
        picture(page, "silent")
    finally:
        site.server.process.send_signal(signal.SIGCONT)
    expect(page.locator(".answered")).to_contain_text("approved #")
    tell(project, issue)
    expect(live).to_have_text("live")
    assert project.forge.pulls.read(number).reviews[0].body == "Good"


def test_a_page_that_cannot_be_kept_fresh_says_so(site_of: MakeSite) -> None:
    site = site_of(ci=NO_CI)
    project = site.stage.project
    issue, _ = offer(project)
    page = site.open()
    why = '<p class="bad">the ledger is locked</p>'
    page.route("**/page/changes*", lambda route: route.fulfill(status=409, body=why))
    tell(project, issue)
    expect(page.locator("#live")).to_contain_text("not up to date since")
    expect(page.locator("#live")).to_have_attribute("title", "the ledger is locked")
    page.unroute("**/page/changes*")
    expect(page.locator("#live")).to_have_text("live")
