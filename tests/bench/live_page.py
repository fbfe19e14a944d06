"""The page in a browser: from an event to its row, and what the server does while all is still."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from playwright.sync_api import Page

from sm.issues.look.snapshot import look
from sm.store import events
from sm.store.paths import name_session
from tests.bench.crowd import Crowd, make_crowd
from tests.bench.measure import Bench, Figure, used_s
from tests.bench.page import fill_journal
from tests.chromium import browsing
from tests.serving import STARTED, serving

CHANGED_MS, IDLE_PERCENT = 300.0, 0.2
EVENTS = 50_000

WATCH = """name => {
  window.changed = new Promise(done => {
    new MutationObserver((_, watcher) => {
      const row = document.querySelector(`#rows [data-key="${name}"]`);
      if (row && row.textContent.includes(window.wanted)) {
        watcher.disconnect();
        done(Date.now());
      }
    }).observe(document.getElementById("rows"), {childList: true, subtree: true});
  });
}"""
"""Promises the moment at which a session's row has the words that are wanted."""


def figures(bench: Bench) -> Iterator[Figure]:
    """The row of a session after an event; then a minute in which nothing happens."""
    [count] = bench.sizes((200,), quick=(200,))
    crowd = make_crowd(bench.folder / "crowd", count, awaiting=True)
    with crowd.held, ExitStack() as open_:
        fill_journal(crowd.project, count, 500 if bench.once else EVENTS)
        look(crowd.project)
        env = os.environ | {"SM_CONFIG": str(crowd.stage.config), "SM_PYTHON": sys.executable}
        server = open_.enter_context(serving(bench.folder, base=env, clean=False, program=STARTED))
        page = open_.enter_context(open_page(server.url))
        what = f"{count} sessions, {EVENTS:,} events"
        rounds = range(bench.rounds(20, 20) + 1)
        _, *changed = [_take_change(page, crowd, number) for number in rounds]
        yield Figure(
            name=f"a change on the page, {what}", unit="ms", samples=changed, budget=CHANGED_MS
        )
        time.sleep(bench.seconds(15))
        idle = [_take_idle_percent(server.process.pid, bench.seconds(60))]
        yield Figure(
            name=f"the server while a page is open, {count} sessions still",
            unit="%",
            samples=idle,
            budget=IDLE_PERCENT,
        )


@contextmanager
def open_page(url: str) -> Iterator[Page]:
    """A browser before the page, which is fresh."""
    with browsing() as browser:
        page = browser.new_page()
        page.goto(url)
        page.wait_for_selector("body[data-live=on]")
        yield page


def _take_change(page: Page, crowd: Crowd, number: int) -> float:
    """From an event until the row of its session has its words, by the same clock."""
    project = crowd.project
    name, state = name_session(project.name, number % crowd.count + 1), f"seen {number}"
    page.evaluate(f"window.wanted = 'monitor {state}'")
    page.evaluate(WATCH, name)
    begun = time.time()
    project.record(events.Monitor(session=name, state=state))
    seen: float = page.evaluate("window.changed")
    page.wait_for_timeout(300)  # so that the next one is a change of its own
    return seen - begun * 1000


def _take_idle_percent(pid: int, seconds: float) -> float:
    before, begun = used_s(pid), time.perf_counter()
    time.sleep(seconds)
    return 100 * (used_s(pid) - before) / (time.perf_counter() - begun)
