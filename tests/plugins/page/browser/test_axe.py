"""The page is fit for a screen reader, as far as axe-core can tell, and for a keyboard alone."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.stage import started
from tests.helpers import wait_for
from tests.plugins.page.browser.conftest import MakeSite, Site, reach
from tests.plugins.page.browser.states import OVER, fill

pytestmark = pytest.mark.long_lived

AXE = Path(__file__).parent / "axe"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""Of axe.min.js in axe-core 4.14.1, as the npm registry has it (MPL-2.0)."""
RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.flatMap((one) => one.nodes.map((node) =>
    `${one.id}: ${node.target} ${node.failureSummary}`));
}"""
BEFORE = re.compile(r"^\s*(Asking .*|Reading|Drawing .*) …\s*$")
"""What stands in a part until it is there."""
SHAPES = [(scheme, width) for scheme in ("light", "dark") for width in (1100, 360)]


def test_axe_is_as_it_was_published() -> None:
    assert hashlib.sha256((AXE / "axe.min.js").read_bytes()).hexdigest() == SHA256
    assert "Mozilla Public License" in (AXE / "LICENSE").read_text()


def find_faults(page: Page) -> list[str]:
    """What axe-core finds, in light and dark, wide and narrow."""
    page.evaluate((AXE / "axe.min.js").read_text())
    found = []
    for scheme, width in SHAPES:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 740})
        found += [f"{scheme} {width}: {one}" for one in page.evaluate(RUN)]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    return found


def open_all(page: Page) -> None:
    """Open each part that is closed at first."""
    for need in page.locator("#needs > li").all():
        reach(need)
    for part in page.locator("details.part[hx-get]").all():
        while part.get_attribute("open") is None:  # a press on what has just moved does nothing
            part.locator("> summary").click()
        expect(part.locator(".body")).not_to_have_text(BEFORE)
    page.evaluate("document.querySelectorAll('details.later').forEach(one => { one.open = true; })")


@pytest.fixture
def site(site_of: MakeSite) -> Site:
    site = site_of()
    fill(site)
    return site


def test_no_page_has_a_fault(site: Site) -> None:
    reading = site.open()
    assert find_faults(reading) == []
    reading.goto(f"{site.server.url}/page/login")
    assert find_faults(reading) == []
    site.log_in()
    acting = site.open()
    open_all(acting)
    assert find_faults(acting) == []
    page = site.open("/page/session/dev-harb-3")
    open_all(page)
    assert find_faults(page) == []
    for path in (
        "/page/numbers",
        "/page/browsers",
        f"/page/session/{OVER}",
        "/page/session/dev-harb-77",
    ):
        page.goto(site.server.url + path)
        open_all(page)
        assert find_faults(page) == []


def test_a_question_is_answered_by_the_keyboard_alone(site_of: MakeSite) -> None:
    site = site_of()
    issue = started(site.stage)
    site.stage.write_phase(issue, "PHASE:escalate\nReason: which colour?")
    site.log_in()
    page = site.open()
    expect(page.locator("#needs")).to_contain_text("which colour?")
    page.keyboard.press("!")
    page.keyboard.type("blue")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Reply"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid", "who uses the keyboard sees where it is"
    page.keyboard.press("Enter")
    wait_for(lambda: [told for told in site.stage.told() if "blue" in told], "the answer")
    expect(page.locator("#needs > li:not(.answered)")).to_have_count(0)
