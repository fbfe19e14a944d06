"""Debian's Chromium, driven by Playwright, before a server of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.chromium import MISSING, PROGRAM, browsing
from tests.e2e.conftest import stage_of as stage_of
from tests.e2e.stage import Stage
from tests.helpers import HANG_S
from tests.serving import STARTED, Served, serving

WIDTH = 1100

expect.set_options(timeout=HANG_S * 1000)


@pytest.fixture
def chromium() -> Iterator[Browser]:
    """A browser for one test."""
    if not PROGRAM:
        pytest.skip(MISSING)
    with browsing() as browser:
        yield browser


EXPECTED = (
    *("Failed to load", "ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY", "htmx:"),
    "Response Status Error Code 401",  # by htmx, of a part when the login is over
)
"""What a browser complains of where a server, or a login, has ended on purpose."""


@dataclass
class Site:
    """The server of a stage, and windows before it."""

    stage: Stage
    server: Served
    link: str
    window: BrowserContext
    words: list[str]
    """What a page has complained of: an error of a script, or what its policy has stopped."""

    def open(self, path: str = "/") -> Page:
        """A tab on that path, as soon as it is fresh."""
        page = self.window.new_page()
        page.on("pageerror", lambda error: self.words.append(str(error)))
        page.on("console", lambda said: self._hear(said.type, said.text))
        page.goto(self.server.url + path)
        page.wait_for_selector("body[data-live=on]")
        return page

    def _hear(self, kind: str, text: str) -> None:
        if kind == "error" and not any(word in text for word in EXPECTED):
            self.words.append(text)

    def log_in(self) -> None:
        page = self.window.new_page()
        page.goto(self.link)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(self.server.url + "/")
        page.close()


MakeSite = Callable[..., Site]


def reach(need: Locator) -> Locator:
    """Open a line of the inbox, and wait for what belongs to it."""
    detail = need.locator(".detail")
    while not detail.is_visible():  # a press on what has just moved does nothing
        if need.locator("details[name=inbox]").get_attribute("open") is None:
            need.locator("summary.line").click()
        need.page.wait_for_timeout(50)
    return need


def wait_for_rest(page: Page) -> None:
    """Have what is done on it wait: a click just after something has moved does nothing."""
    page.add_locator_handler(page.locator("body[data-moved]"), lambda _: None)


@pytest.fixture
def site_of(
    chromium: Browser, stage_of: Callable[..., Stage], tmp_path: Path
) -> Iterator[MakeSite]:
    """Serve a stage: `site_of(width=360)`; a page that complains fails its test."""
    made: list[Site] = []
    with ExitStack() as open_:

        def make(*, width: int = WIDTH, options: tuple[str, ...] = (), **settings: object) -> Site:
            # No dev-poll runs beside it: with rare ticks none is missed, on however slow a machine.
            stage = stage_of(settings={"poll_interval": "1h"} | settings)
            server = open_.enter_context(
                serving(
                    tmp_path,
                    "--open",
                    *options,
                    base=stage.environment,
                    clean=False,
                    program=STARTED,
                )
            )
            assert server.process.stdout
            link = server.process.stdout.readline().split()[-1]
            window = chromium.new_context(viewport={"width": width, "height": 800})
            window.on("page", wait_for_rest)
            open_.callback(window.close)
            window.set_default_timeout(HANG_S * 1000)
            made.append(Site(stage, server, link, window, []))
            return made[-1]

        yield make
        for site in made:
            assert not site.words, site.words
