"""A person before the page: answers, watches, and comes back."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sm.store import events
from tests.e2e.stage import count_merges, leave_merge, started
from tests.helpers import put_session, wait_for
from tests.plugins.page.browser.conftest import MakeSite, Site, reach
from tests.plugins.page.offered import look
from tests.serving import STARTED, serving

pytestmark = pytest.mark.long_lived
UNANSWERED = "#needs > li:not(.answered)"


def show(site: Site, issue: int, state: str = "started") -> None:
    """Have something happen in that session."""
    name = f"dev-harb-{issue}"
    site.stage.project.record(events.Monitor(session=name, state=state))


def wait_for_row(page: Page, issue: int, words: str) -> None:
    expect(page.locator(f'#rows [data-key="dev-harb-{issue}"]')).to_contain_text(words)


@pytest.fixture
def site(site_of: MakeSite) -> Site:
    made = site_of()
    for issue in (3, 4):
        put_session(made.stage.project, issue, f"Mend it {issue}", alive=False)
    return made


def test_a_question_is_answered_in_two_clicks(site_of: MakeSite) -> None:
    site = site_of()
    issue = started(site.stage)
    site.log_in()
    page = site.open()
    expect(page.locator("#no-needs")).to_be_visible()
    site.stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    need = page.locator(UNANSWERED)
    expect(need).to_contain_text("which colour?")
    expect(page).to_have_title("(1) sm")
    reach(need).get_by_label("Your answer").click()
    page.keyboard.type('blue, <b>"not" red</b>')
    need.get_by_role("button", name="Reply").click()
    expect(page.locator("#said")).to_contain_text("answered #")
    words = 'blue, <b>"not" red</b>'
    wait_for(lambda: [told for told in site.stage.told() if words in told], "the answer")
    expect(need).to_have_count(0)
    expect(page).to_have_title("sm")


def test_a_pull_request_is_turned_back_and_approved(site_of: MakeSite) -> None:
    site = site_of()
    issue = started(site.stage)
    site.log_in()
    page = site.open()
    need = page.locator(UNANSWERED)
    site.stage.push_work(issue)
    site.stage.write_phase(issue, "PHASE:awaiting_review")
    reach(need).get_by_text("Request changes …").click()
    need.get_by_label("What is to change").fill("Say <b>more</b>")
    need.get_by_role("button", name="Request changes").click()
    wait_for(lambda: [told for told in site.stage.told() if "Say <b>more</b>" in told], "it")
    expect(need).to_have_count(0)
    head = site.stage.push_work(issue, content="more\n")
    look(site.stage.project)  # or the card is of the commit before at first
    site.stage.write_phase(issue, "PHASE:awaiting_review")
    reach(need).get_by_role("button", name="Approve").click()
    expect(page.locator("#said")).to_contain_text(f"at {head[:12]}")
    wait_for(lambda: [told for told in site.stage.told() if "Review: approved" in told], "it")
    expect(need).to_have_count(0)


def test_a_merge_that_the_agent_leaves_is_made_on_the_page(site_of: MakeSite) -> None:
    site = site_of(merge={"remind": "1s"})
    issue = started(site.stage)
    site.log_in()
    page = site.open()
    need = page.locator(UNANSWERED)
    leave_merge(site.stage, issue)
    expect(reach(need)).to_contain_text("still not merged")
    need.get_by_text("Merge …").click()
    need.get_by_role("button", name="Merge").click()
    expect(page.locator("#said")).to_contain_text("merged #")
    wait_for(lambda: site.stage.is_over(issue), "the end of the session")
    expect(need).to_have_count(0)
    assert count_merges(site.stage, issue) == 1


def test_a_change_shows_by_itself_and_moves_nothing(site: Site) -> None:
    page = site.open()
    rows = page.locator("#rows > tr:not(.group)")
    before = rows.evaluate_all("items => items.map(one => one.dataset.key)")
    page.evaluate("document.querySelectorAll('#rows > tr:not(.group)')[1].seen = true")
    page.locator("#rows a").first.focus()
    show(site, 3)
    wait_for_row(page, 3, "monitor started")
    after = rows.evaluate_all("items => items.map(one => one.dataset.key)")
    assert after == before
    assert page.evaluate("document.querySelectorAll('#rows > tr:not(.group)')[1].seen") is True
    assert page.evaluate("document.activeElement.textContent") == "harb#3"
    put_session(site.stage.project, 1, "Come first", alive=False)
    wait_for_row(page, 1, "Come first")
    first = page.locator("#rows > tr:not(.group)").first
    assert first.get_attribute("data-key") == "dev-harb-1"


def test_what_a_person_is_typing_is_never_replaced(site_of: MakeSite) -> None:
    site = site_of()
    issue = started(site.stage)
    site.stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    site.log_in()
    page = site.open()
    reach(page.locator("#needs > li")).locator("textarea").fill("I think")
    site.stage.write_phase(issue, "PHASE:escalate\nReason: which size?")
    needs = page.locator("#needs > li")
    expect(needs.filter(has_text="which size?")).to_have_count(1)
    kept = needs.filter(has_text="which colour?").locator("textarea")
    assert kept.input_value() == "I think"
    kept.fill("")
    kept.blur()
    show(site, issue)
    expect(needs).to_have_count(1)


def test_eight_tabs_share_one_stream(site: Site) -> None:
    tabs = [site.open() for _ in range(8)]
    leads = [tab.evaluate("document.body.dataset.leads || ''") for tab in tabs]
    assert leads.count("yes") == 1
    show(site, 4)
    for tab in tabs:
        wait_for_row(tab, 4, "monitor started")
    tabs.pop(leads.index("yes")).close()
    for tab in tabs:
        expect(tab.locator("body")).to_have_attribute("data-live", "on")
    show(site, 3, "stopped")
    for tab in tabs:
        wait_for_row(tab, 3, "monitor stopped")


def test_the_page_goes_on_when_the_server_is_started_anew(site: Site, tmp_path: Path) -> None:
    site.log_in()
    page = site.open()
    site.server.stop(signal.SIGKILL)
    expect(page.locator("body")).to_have_attribute("data-live", "off")
    show(site, 3)
    port = ("--port", str(site.server.port))
    with serving(tmp_path, *port, base=site.stage.environment, clean=False, program=STARTED):
        expect(page.locator("body")).to_have_attribute("data-live", "on")
        wait_for_row(page, 3, "monitor started")
        page.reload()
        expect(page.get_by_text("Logged in")).to_be_visible()
        page.goto("about:blank")


@pytest.mark.parametrize("path", ["/", "/page/session/dev-harb-3"])
def test_a_phone_shows_all_of_it(site: Site, path: str) -> None:
    site.log_in()
    page = site.open(path)
    assert page.get_by_text("Mend it 3").locator("visible=true").count() == 1
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    narrow = page.locator("button:visible").evaluate_all(
        "all => all.filter(one => one.getBoundingClientRect().height < 32).length"
    )
    assert narrow == 0


def test_keys_find_and_filter(site: Site) -> None:
    page = site.open()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("it 4/")
    expect(page.locator("#rows > tr:not(.group)")).to_have_count(0)
    page.keyboard.press("Backspace")
    expect(page.locator("#rows > tr:not(.group)")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/\?q=it(%20|\+)4"))
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == ""
    show(site, 3)
    show(site, 4)
    wait_for_row(page, 4, "monitor started")
    expect(page.locator("#rows > tr:not(.group)")).to_have_count(1)
    page.go_back()
    expect(page.locator("#rows > tr:not(.group)")).to_have_count(0)
    expect(page.locator("#live")).to_have_text("live")


def test_a_session_is_ended_after_a_second_click(site: Site) -> None:
    site.log_in()
    page = site.open("/page/session/dev-harb-4")
    assert not page.get_by_role("button", name="End session").is_visible()
    page.get_by_text("End session …").click()
    expect(page.get_by_text("Ends harb#4 and labels issue #4 blocked")).to_be_visible()
    page.get_by_text("Pause …").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#said")).to_contain_text("paused")
    expect(page.locator("#story")).to_contain_text("was paused by")
