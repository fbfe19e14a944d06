"""A session on a node, seen and answered in a browser, over a real ssh."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from sm.store.paths import Root
from tests.helpers import HANG_S, wait_for
from tests.plugins.hosts.world import living
from tests.plugins.page.browser.test_axe import find_faults
from tests.serving import STARTED, serving
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]


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
            need.locator("textarea").fill("blue")
            need.get_by_role("button", name="Reply").click()
            expect(page.locator("#said")).to_contain_text("answered #1")
            wait_for(lambda: "blue" in "".join(stage.told()), "the answer")
            expect(need).to_have_count(0)
            page.goto(f"{server.url}/page/session/dev-harb-1")
            expect(page.locator("#story")).to_contain_text("took the issue")
            page.locator("#screen > summary").click()
            screen = page.locator("#screen pre")
            expect(screen).to_contain_text("❯")
            before = screen.inner_text()
            stage.sm("send", "harb#1", "go on")
            expect(screen).not_to_have_text(before)  # it is asked for again
            page.locator("#letter textarea").fill("only the cart")
            page.locator("#letter").get_by_role("button", name="Send").click()
            expect(page.locator("#messages")).to_contain_text("only the cart")
            assert not find_faults(page)
            window.close()
            assert not words
