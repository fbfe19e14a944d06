"""The page in a browser elsewhere: through a proxy with TLS, and when its login is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from sm.store import events
from tests.e2e.stage import Stage
from tests.helpers import put_session
from tests.plugins.page.browser.conftest import MakeSite
from tests.plugins.page.proxy import Proxy
from tests.serving import STARTED, serving

pytestmark = pytest.mark.long_lived


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy("nginx", tmp_path / "proxy")
    yield made
    made.stop()


def test_a_page_behind_a_proxy_is_fresh_and_goes_on_by_itself(
    chromium: Browser, stage_of: Callable[..., Stage], proxy: Proxy, tmp_path: Path
) -> None:
    stage = stage_of()
    put_session(stage.project, 3, "Mend it", alive=False)
    window = chromium.new_context(ignore_https_errors=True)
    page = window.new_page()
    body = page.locator("body")

    def show(state: str) -> None:
        stage.project.record(events.Monitor(session="dev-harb-3", state=state))
        row = page.locator('#rows [data-key="dev-harb-3"]')
        expect(row).to_contain_text(f"monitor {state}")

    options = ("--open", "--public-url", proxy.url)
    with serving(
        tmp_path, *options, base=stage.environment, clean=False, program=STARTED
    ) as server:
        assert server.process.stdout
        proxy.start(server.url)
        assert page.goto(proxy.url).status == 401  # type: ignore[union-attr]
        page.goto(server.process.stdout.readline().split()[-1])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{proxy.url}/")
        expect(body).to_have_attribute("data-live", "on")
        show("started")
        proxy.stop()
        expect(page.locator("#live")).to_have_text("not connected")
        proxy.start(server.url)
        expect(body).to_have_attribute("data-live", "on")
        show("stopped")
        server.stop()
        expect(page.locator("#live")).to_have_text("not connected")
    place = ("--port", str(server.port))
    with serving(
        tmp_path, *options[1:], base=stage.environment, clean=False, place=place, program=STARTED
    ):
        expect(body).to_have_attribute("data-live", "on")
        show("started")
        page.get_by_text("Logged in").click()
        page.get_by_role("link", name="All browsers").click()
        expect(page.get_by_text("(this one)")).to_be_visible()
        page.get_by_role("button", name="Log out all of them").click()
        expect(page.get_by_text("log in: open the link")).to_be_visible()
        window.close()


def test_when_a_login_is_over_its_page_says_so_and_leaves_what_is_being_written(
    site_of: MakeSite, tmp_path: Path
) -> None:
    readers = tmp_path / "readers"
    readers.write_text("0123456789abcdef-only-reads\n")
    readers.chmod(0o600)
    site = site_of(options=("--read-token-file", str(readers)))
    put_session(site.stage.project, 3, "Mend it", alive=False)
    site.log_in()
    idle, writes = site.open(), site.open("/page/session/dev-harb-3")
    writes.locator("#letter-text").fill("Please")
    (site.stage.project.root.plugins / "page" / "logins.json").unlink()
    site.stage.project.record(events.Monitor(session="dev-harb-3", state="started"))
    expect(idle.get_by_text("log in: open the link")).to_be_visible()
    expect(writes.locator("#live")).to_have_text("logged out")
    assert writes.locator("#letter-text").input_value() == "Please"
