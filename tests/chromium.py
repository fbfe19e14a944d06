"""The browser that the tests of the page drive: Debian's, or the one that is named."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

PROGRAM = os.environ.get("SM_TEST_CHROMIUM") or shutil.which("chromium") or ""
MISSING = "no chromium: apt-get install chromium"


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser; while its driver runs, no other loop can run in this thread."""
    # The path of its socket has no room for the folder of a test.
    with TemporaryDirectory(dir="/tmp", prefix="sm-page-") as folder, sync_playwright() as driver:
        # Root, as in a container, has no sandbox; only pages of our own are opened.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        known: dict[str, str | float | bool] = {**os.environ, "TMPDIR": folder}
        browser = driver.chromium.launch(executable_path=PROGRAM, args=flags, env=known)
        yield browser
        browser.close()
