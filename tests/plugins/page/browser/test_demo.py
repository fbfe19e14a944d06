"""`bin/demo --web`: its journeys are watched and answered from the page alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, TimeoutError, expect

from tests.helpers import HANG_S
from tests.plugins.page.browser.conftest import reach

pytestmark = pytest.mark.long_lived

DEMO = Path(__file__).resolve().parents[4] / "bin" / "demo"
LINK = re.compile(r"^the page: (\S+)$", re.MULTILINE)
ACT_S, TAKEN_S = 30.0, 3.0
WISH = "an empty list ends in an error: return an empty text"


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    """The demo, which leaves everything to the person for longer than they need."""
    process = subprocess.Popen(
        [DEMO, "--plain", "--web", "--wait", "120"],
        env=os.environ | {"SM_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.terminate()
    process.communicate(timeout=HANG_S)


def read_link(demo: subprocess.Popen[str]) -> str:
    assert demo.stdout
    for line in demo.stdout:
        if found := LINK.search(line):
            return found[1]
    pytest.fail("the demo named no page")


def answer(need: Locator, wish: str) -> None:
    """Do what a person would: answer the question, have `wish` done, approve what is left."""
    reach(need)
    if need.get_by_role("button", name="Reply").count():
        need.get_by_role("textbox").fill("Up, please")
        need.get_by_role("button", name="Reply").click()
    elif wish:
        need.get_by_text("Request changes …").click()
        need.get_by_label("What is to change").fill(wish)
        need.get_by_role("button", name="Request changes").click()
    else:
        need.get_by_role("button", name="Approve").click()


def is_answered(need: Locator, wish: str) -> bool:
    """Whether the page has taken the answer. A press on what has just moved does nothing.

    It may be settled meanwhile, as when a lost agent takes its request back.
    """
    try:
        answer(need, wish)
        need.locator(".done").wait_for(timeout=TAKEN_S * 1000)
    except TimeoutError:
        return not need.count()
    return True


def test_a_person_is_the_reviewer_and_is_asked(
    demo: subprocess.Popen[str], chromium: Browser
) -> None:
    page = chromium.new_page()
    page.set_default_timeout(ACT_S * 1000)
    page.goto(read_link(demo))
    page.get_by_role("button", name="Log in").click()
    needs, wishes = page.locator("#needs > li"), [WISH]
    expect(needs.first).to_be_visible()
    expect(page.get_by_text("the script answers at").first).to_be_visible()

    met = set[str]()
    while demo.poll() is None:
        shown = needs.evaluate_all("items => items.map(item => item.dataset.key)")
        met &= set(shown)
        for key in set(shown) - met:
            need = page.locator(f'#needs > li[data-key="{key}"]')
            wish = wishes[0] if wishes and need.get_by_text("join_names").count() else ""
            if is_answered(need, wish):
                met.add(key)
                wishes = [] if wish else wishes
        page.wait_for_timeout(100)

    said, complained = demo.communicate(timeout=HANG_S)
    assert demo.returncode == 0, said + complained
    assert "5 of 5 merged" in said
    assert "$ sm r" not in said, "the script has done nothing of it"
    assert said.count("on the page") >= 7
    for journey in ("mended the fault", "at a line", "recovered from", "went on with the answer"):
        assert journey in said
