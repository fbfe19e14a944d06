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
"""Pixels; a higher picture is too much for a README, so it ends behind a session."""
GAP = 10.0
"""Pixels below the last one that is to be seen."""
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
        ends = self._find_ends()
        if not kinds or not ends:
            return
        worth = 10 * len(set(kinds)) + len(set(states[: len(ends)])) + 2 * len(ends)
        if worth < self._best:
            return
        taken = {scheme: self._take(scheme, ends[-1] + GAP) for scheme in SCHEMES}
        if self._find_ends() == ends:  # else it has changed meanwhile
            self._best, self.found = worth, taken

    def _find_ends(self) -> list[float]:
        """Where each session ends that fits into the picture, from above."""
        boxes = [one.bounding_box() for one in self._page.locator("#rows > li").all()]
        ends = (box["y"] + box["height"] for box in boxes if box)
        return [end for end in ends if end <= HIGHEST]

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
