"""Sixty sessions and five minutes: what needs a person is found, read and answered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from sm.sessions import pause
from tests.helpers import HANG_S
from tests.plugins.page.browser.conftest import reach, wait_for_rest
from tests.plugins.page.sixty import CHOICES, FILES, ISSUES, PROJECTS, Sixty, sixty
from tests.serving import STARTED, serving

pytestmark = pytest.mark.long_lived

IN_SIGHT = """() => [...document.querySelectorAll("#needs > li > details > summary")]
  .filter((line) => line.getBoundingClientRect().bottom <= innerHeight).length"""
TOP = "() => document.querySelector('table.sessions').getBoundingClientRect().top + scrollY"


@pytest.fixture
def world(tmp_path: Path, tmux_socket: str) -> Iterator[Sixty]:
    assert tmux_socket
    with sixty(tmp_path) as made:
        yield made


@pytest.fixture(params=[1440, 360])
def page(
    request: pytest.FixtureRequest, chromium: Browser, world: Sixty, tmp_path: Path
) -> Iterator[Page]:
    base = dict(os.environ) | {"SM_CONFIG": str(world.folder / "sm.yaml")}
    with serving(tmp_path, "--open", base=base, clean=False, program=STARTED) as server:
        assert server.process.stdout
        link = server.process.stdout.readline().split()[-1]
        window = chromium.new_context(viewport={"width": request.param, "height": 800})
        window.set_default_timeout(HANG_S * 1000)
        opened, words = window.new_page(), list[str]()
        wait_for_rest(opened)
        opened.on("pageerror", lambda error: words.append(str(error)))
        opened.goto(link)
        opened.get_by_role("button", name="Log in").click()
        opened.wait_for_selector("body[data-live=on]")
        yield opened
        window.close()
        assert not words


def test_sixty_sessions_are_gone_through(page: Page, world: Sixty) -> None:
    assert page.viewport_size
    is_wide = page.viewport_size["width"] > 1000
    lines = page.locator("#needs > li")
    expect(lines).not_to_have_count(0)
    assert page.evaluate(IN_SIGHT) >= (14 if is_wide else 9)
    assert page.evaluate("document.documentElement.scrollWidth") <= (1440 if is_wide else 360)
    if is_wide:
        assert page.evaluate(TOP) < 800, "the sessions begin on the first screen"
        expect(lines.first.locator(".detail")).to_be_visible()  # by itself
    row = page.locator("#rows tr:not(.group)").first.bounding_box()
    assert row
    assert row["height"] <= (34 if is_wide else 62)

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("#needs details[open]")).to_have_count(1)

    need = reach(page.locator('#needs > li[data-session="dev-shop-11"]'))
    strong = need.locator(".detail strong", has_text="On the server")
    expect(strong).to_be_visible()  # as the agent has said it
    expect(need.locator(".choice")).to_have_count(CHOICES)
    need.get_by_text("more …").click()
    need.get_by_role("button", name=f"Way {CHOICES}", exact=True).click()
    assert need.locator("textarea").input_value() == f"Way {CHOICES}"

    need = reach(page.locator('#needs > li[data-session="dev-shop-1"]'))
    need.get_by_text("What it changes").click()
    expect(need.locator(".total")).to_have_text(f"{FILES} files, +1,280 −0")
    expect(need.locator("details.file")).to_have_count(FILES)
    last = need.locator("details.file").last
    assert last.get_attribute("open") is None
    last.locator("summary").click()
    expect(last.locator(".added .k").first).to_be_visible()  # with its colours
    assert page.evaluate("document.documentElement.scrollWidth") <= (1440 if is_wide else 360)

    page.get_by_label("Project").select_option("atlas")
    expect(page.locator("#rows tr:not(.group)")).to_have_count(ISSUES)
    expect(page.locator("#left-out")).to_contain_text("left out by the filter")
    page.locator("#groups label", has_text="in trouble").click()
    expect(page.locator("#rows tr:not(.group)")).to_have_count(1)
    expect(page.locator("#rows")).to_contain_text("crashed")

    page.get_by_text("Pause", exact=True).click()
    brake = page.locator(".menu .brake")
    expect(brake.locator("li")).to_have_count(1 + len(PROJECTS))
    brake.locator("li").first.get_by_role("button", name="Pause").click()
    expect(page.locator("#said")).to_contain_text("all is paused")
    expect(brake.locator("li")).to_have_count(1)
    expect(page.locator("#notes")).to_contain_text("all is paused")
    assert pause.read(world.machine.root).pauses
