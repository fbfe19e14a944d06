"""The numbers in a browser: pictures that it draws, at a phone's size too."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from sm.plugins.cost.settings import find_ledger
from tests.plugins.page.browser.conftest import MakeSite, Site
from tests.plugins.page.past import tell_weeks

pytestmark = pytest.mark.long_lived


def open_numbers(site: Site) -> Page:
    page = site.window.new_page()
    page.on("console", lambda said: site.words.append(said.text))
    page.on("requestfailed", lambda request: site.words.append(request.url))
    page.goto(f"{site.server.url}/page/numbers")
    return page


@pytest.mark.parametrize("width", [360, 1100])
def test_every_picture_is_drawn_and_the_choice_is_in_the_address(
    site_of: MakeSite, width: int
) -> None:
    site = site_of(width=width)
    project = site.stage.project
    ledger = find_ledger(project.machine.settings)
    ledger.parent.mkdir(parents=True, exist_ok=True)
    tell_weeks(project.root, ledger, days=40, projects=(project.name, "web.shop"))
    page = open_numbers(site)
    pictures = page.locator("figure img")
    expect(pictures).to_have_count(9)
    page.wait_for_function("[...document.images].every((one) => one.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawn = page.evaluate("[...document.images].map((one) => one.currentSrc)")
    assert {one.endswith("narrow=1") for one in drawn} == {width == 360}
    merged = page.locator(".totals div", has_text="Merged").locator("dd")
    before = merged.inner_text()
    page.get_by_text("7 days").click()
    expect(merged).not_to_have_text(before)
    page.wait_for_url("**/page/numbers?span=7*")
    page.get_by_role("heading", name="Cost and tokens by model").click()
    expect(page.get_by_role("rowheader", name="claude-sonnet-5")).to_be_visible()
