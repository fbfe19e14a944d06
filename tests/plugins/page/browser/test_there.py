"""A session on a node, seen and answered in a browser, over a real ssh."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from sm.adapters.tmux import Tmux
from sm.plugins.page.terminal.remote_screen import VIEWS_THERE
from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for
from tests.plugins.hosts.world import Machine, living
from tests.plugins.page.browser.conftest import reach
from tests.plugins.page.browser.test_axe import find_faults
from tests.plugins.page.browser.test_terminal import picture
from tests.plugins.page.watcher import Watcher
from tests.serving import STARTED, serving
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]


NAME = "dev-harb-1"


def open_terminal(page: Page) -> Locator:
    part = page.locator("#terminal")
    part.locator("summary").click()
    expect(part).to_have_attribute("data-state", "on")
    return part


def is_same(page: Page, machine: Machine) -> bool:
    """Whether the page has what the pane shows there, without tmux's own line."""
    *rows, _ = page.evaluate("document.getElementById('terminal').read()")
    pane = ("capture-pane", "-p", "-t", f"={NAME}:")
    there = Tmux(machine.socket).command(*pane).rstrip("\n").split("\n")
    return [row.rstrip() for row in rows[: len(there)]] == [row.rstrip() for row in there]


def test_a_session_on_a_node_is_watched_and_answered(
    chromium: Browser, tmp_path: Path, root: Root, tmux_socket: str
) -> None:
    assert (root.path, bool(tmux_socket)) == (tmp_path / "state", True)
    with living(tmp_path, auto=False) as world:
        stage = world.stage
        stage.file_issue()
        stage.poll()
        wait_for(stage.told, "the first prompt")
        world.box.write_phase(1, "PHASE:escalate\nReason: which colour?")
        base = stage.environment
        with serving(tmp_path, "--open", base=base, clean=False, program=STARTED) as server:
            assert server.process.stdout
            link = server.process.stdout.readline().split()[-1]
            window = chromium.new_context(viewport={"width": 1100, "height": 900})
            window.set_default_timeout(HANG_S * 1000)
            page, words = window.new_page(), list[str]()
            page.on("pageerror", lambda error: words.append(str(error)))
            page.on(
                "console", lambda said: words.append(said.text) if said.type == "error" else None
            )
            page.goto(link)
            page.get_by_role("button", name="Log in").click()
            need = page.locator("#need-dev-harb-1")
            expect(need).to_contain_text("which colour?")  # without an event here
            expect(page.locator("#rows")).to_contain_text("box")
            reach(need).locator("textarea").fill("blue")
            need.get_by_role("button", name="Reply").click()
            expect(page.locator("#said")).to_contain_text("answered #1")
            wait_for(lambda: "blue" in "".join(stage.told()), "the answer")
            expect(page.locator("#need-dev-harb-1.answered")).to_have_count(1)
            page.goto(f"{server.url}/page/session/dev-harb-1")
            expect(page.locator("#story")).to_contain_text("took the issue")
            part = open_terminal(page)
            wait_for(lambda: is_same(page, world.box), "the screen of the node")
            stage.sm("send", "harb#1", "go on")
            wait_for(lambda: is_same(page, world.box), "what has changed there")
            page.locator("#letter textarea").fill("only the cart")
            page.locator("#letter").get_by_role("button", name="Send").click()
            expect(page.locator("#messages")).to_contain_text("only the cart")
            assert not find_faults(page)
            for width in (1100, 360):
                page.set_viewport_size({"width": width, "height": 900})
                part.locator("summary").scroll_into_view_if_needed()
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                picture(page, f"there-{width}")
            part.locator("summary").click()  # it lets go of it
            watchers = [Watcher(server, NAME) for _ in range(VIEWS_THERE)]
            for watcher in watchers:
                watcher.wait_for_word("begin")
            part.locator("summary").click()
            expect(part.locator("[data-is=state]")).to_contain_text("are open already: as text")
            text = part.locator("[data-is=text] pre")
            expect(text).to_contain_text("❯")
            before = text.inner_text()
            stage.sm("send", "harb#1", "and the till")
            expect(text).not_to_have_text(before)  # it is asked for again
            assert not find_faults(page)
            picture(page, "there-text-360")
            for watcher in watchers:
                watcher.close()
            window.close()
            assert not words
