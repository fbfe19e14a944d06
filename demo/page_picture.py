"""The page as a person has it in the demo, in light and dark: as PNG."""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from playwright.sync_api import Page, sync_playwright

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTH, HEIGHT = 940, 700
HIGHEST = 1200
"""Pixels; a higher picture is too much for a README."""
END_MS = 20_000.0


class PagePicture:
    """Chromium before the page, in a thread of its own: its driver wants no other loop there.

    It is made before the demo has an environment of its own: with that it would be a part of it.
    """

    def __init__(self) -> None:
        self.found: dict[Scheme, bytes] = {}
        self._best = 0
        self._thread = ThreadPoolExecutor(1)
        self._folder = tempfile.TemporaryDirectory(dir="/tmp", prefix="sm-page-")
        self._thread.submit(self._start, dict(os.environ)).result()

    def open(self, link: str) -> None:
        """Log in by the link."""
        self._thread.submit(self._open, link).result()

    def look(self) -> None:
        """Keep what is to be seen now, if it shows as much as the best moment so far."""
        self._thread.submit(self._look).result()

    def close(self) -> None:
        """End the browser."""
        self._thread.submit(self._close).result()
        self._thread.shutdown()
        self._folder.cleanup()

    def _start(self, environ: dict[str, str]) -> None:
        self._driver = sync_playwright().start()
        self._browser = self._driver.chromium.launch(
            executable_path=environ.get("SM_TEST_CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
            env={**environ, "TMPDIR": self._folder.name},
        )
        self._page: Page = self._browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        self._page.set_default_timeout(END_MS)

    def _open(self, link: str) -> None:
        self._page.goto(link)
        self._page.get_by_role("button", name="Log in").click()
        self._page.wait_for_selector("body[data-live=on]")

    def _look(self) -> None:
        kinds = self._page.locator("#needs .kind").all_inner_texts()
        states = self._page.locator("#rows .state .chip").all_inner_texts()
        bottom = self._page.locator("footer").bounding_box()
        if not kinds or bottom is None or bottom["y"] > HIGHEST:
            return
        worth = 10 * len(set(kinds)) + len(set(states)) + 2 * len(states)
        if worth < self._best:
            return
        taken = {scheme: self._take(scheme, bottom["y"]) for scheme in SCHEMES}
        if self._page.locator("footer").bounding_box() == bottom:  # else it has changed meanwhile
            self._best, self.found = worth, taken

    def _take(self, scheme: Scheme, height: float) -> bytes:
        self._page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        return self._page.screenshot(
            clip={"x": 0, "y": 0, "width": WIDTH, "height": height},
            full_page=True,
            animations="disabled",
        )

    def _close(self) -> None:
        self._browser.close()
        self._driver.stop()
