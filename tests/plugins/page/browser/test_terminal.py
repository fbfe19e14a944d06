"""A person before the terminal on a session's page."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, WebSocket, expect

from sm.adapters.tmux import Pane
from sm.adapters.tmux_start import start_session
from tests.e2e.stage import started
from tests.helpers import put_session, wait_for
from tests.plugins.page.browser.conftest import MakeSite, Site
from tests.serving import STARTED, serving

pytestmark = pytest.mark.long_lived

NAME = "dev-harb-3"
PICTURES = os.environ.get("SM_TEST_PICTURES", "")
"""A folder for pictures of what a person sees, '' for none."""

SCREEN = r"""
import sys, time
out = sys.stdout
out.write("\033[1m Agent \033[0m\033[38;2;255;120;60mtrue colour\033[0m ")
out.write("\033[48;5;24m indexed \033[0m \033[2mdim\033[0m\r\n")
out.write("\u256d" + "\u2500" * 60 + "\u256e\r\n")
out.write("\u2502 wide: \u6f22\u5b57 \u00fcml\u00e4ut \U0001f980" + " " * 39 + "\u2502\r\n")
out.write("\u2570" + "\u2500" * 60 + "\u256f\r\n")
for number in range(30):
    out.write(f"line {number}: " + "abcdefghij " * 12 + "\r\n")
out.flush()
"""
HOSTILE = r"""
import sys
out = sys.stdout
out.write("\033]0;stolen title\007\033]2;stolen\007\033]52;c;c3RvbGVu\007")
out.write("\033]8;;javascript:alert(1)\033\\click\033]8;;\033\\ ")
straight = ("]52;c;c3RvbGVu\007", "[c", "[>c", "[6n", "[18t", "[?1003h", "[?1004h", "[>q", "[?u")
for one in (*straight, "]11;?\007", "]10;?\007", "]4;1;?\007", "[?25$p", "]0;stolen\007"):
    out.write(f"\033Ptmux;\033\033{one}\033\\")
out.write("<img src=x onerror=alert(1)><script>alert(2)</script>\r\n")
out.flush()
"""


def begin(site: Site, script: str, before: str = "") -> Pane:
    """An agent whose terminal shows what that script writes, and then what is typed."""
    program = site.stage.folder / "shows.py"
    program.write_text(script)
    command = ["sh", "-c", f"{before} python3 {program.name}; exec cat"]
    tmux = site.stage.project.tmux
    pane = start_session(tmux, NAME, site.stage.folder, command, size=(160, 50))
    put_session(site.stage.project, 3, "Mend it", alive=False)
    return pane


def open_terminal(site: Site) -> tuple[Page, Locator]:
    page = site.open(f"/page/session/{NAME}")
    page.get_by_role("heading", name="Terminal").click()
    part = page.locator("#terminal")
    expect(part).to_have_attribute("data-state", "on")
    return page, part


def read(page: Page) -> list[str]:
    """What the terminal on the page shows, without tmux's own line."""
    rows: list[str] = page.evaluate("document.getElementById('terminal').read()")
    return rows[:-1]


def shown(site: Site, pane: Pane) -> list[str]:
    return site.stage.project.tmux.capture(pane.id).rstrip("\n").split("\n")


def is_same(page: Page, site: Site, pane: Pane) -> bool:
    there = [row.rstrip() for row in read(page)]
    while there and not there[-1]:
        there.pop()
    return there == [row.rstrip() for row in shown(site, pane)]


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_it_shows_what_tmux_shows_and_leaves_the_window_as_it_is(site_of: MakeSite) -> None:
    site = site_of(width=1280)
    pane = begin(site, SCREEN)
    site.log_in()
    page, part = open_terminal(site)
    wait_for(lambda: is_same(page, site, pane), "the same screen")
    tmux = site.stage.project.tmux
    size = tmux.command("display-message", "-p", "-t", pane.id, "#{window_width}x#{window_height}")
    assert size.strip() == "160x50"
    tmux.command("send-keys", "-t", pane.id, "a new line", "Enter")
    wait_for(lambda: is_same(page, site, pane), "what has changed")
    picture(page, "wide-light")
    colours = part.locator(".xterm-rows span", has_text="true colour").first
    assert colours.evaluate("one => getComputedStyle(one).color") == "rgb(255, 120, 60)"
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"wide-{scheme}")
    frame = part.locator("[data-is=frame]")
    assert frame.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_can_be_read_on_a_phone(site_of: MakeSite) -> None:
    site = site_of(width=360)
    pane = begin(site, SCREEN)
    site.log_in()
    page, part = open_terminal(site)
    page.set_viewport_size({"width": 360, "height": 740})
    wait_for(lambda: is_same(page, site, pane), "the same screen")
    letters = part.locator(".xterm-rows")
    wait_for(
        lambda: letters.evaluate("one => parseFloat(getComputedStyle(one).fontSize)") >= 11,
        "letters that can be read",
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"phone-{scheme}")
    part.get_by_role("button", name="Whole width").click()
    frame = part.locator("[data-is=frame]")
    wait_for(
        lambda: frame.evaluate("one => one.scrollWidth <= one.clientWidth + 1"), "the whole width"
    )
    picture(page, "phone-whole")
    part.get_by_role("button", name="As text").click()
    part.get_by_text("straight into the terminal").click()
    expect(part).to_have_attribute("data-state", "types")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    picture(page, "phone-typing")


def test_a_hostile_screen_stays_within_its_rows(site_of: MakeSite) -> None:
    site = site_of()
    pane = begin(site, HOSTILE, "read begin;")
    tmux = site.stage.project.tmux
    tmux.command("set-option", "-p", "-t", pane.id, "-q", "allow-passthrough", "on")
    tmux.command("set-option", "-t", f"={NAME}:", "set-titles", "on")
    tmux.command("set-option", "-s", "set-clipboard", "on")
    site.log_in()
    asked: list[str] = []
    keys: list[bytes] = []

    def note(sent: bytes | str) -> None:
        if isinstance(sent, bytes):
            keys.append(sent)

    def follow(socket: WebSocket) -> None:
        socket.on("framesent", note)

    page = site.open(f"/page/session/{NAME}")
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", follow)
    page.on("dialog", lambda dialog: site.words.append(dialog.message))
    page.evaluate("() => { navigator.clipboard.writeText = () => console.error('the clipboard'); }")
    title = page.title()
    page.get_by_role("heading", name="Terminal").click()
    part = page.locator("#terminal")
    expect(part).to_have_attribute("data-state", "on")
    part.get_by_text("straight into the terminal").click()
    expect(part).to_have_attribute("data-types", "yes")
    tmux.command("send-keys", "-t", pane.id, "begin", "Enter")
    wait_for(lambda: any("<script>" in row for row in read(page)), "the screen")
    page.locator(".xterm-rows").get_by_text("click").first.click(
        force=True, position={"x": 9, "y": 5}
    )
    tmux.command("send-keys", "-t", pane.id, "shown", "Enter")
    wait_for(lambda: any("shown" in row for row in read(page)), "what comes then")
    assert page.title() == title
    assert page.locator(".xterm-rows img, .xterm-rows script, .xterm-rows a").count() == 0
    ours = (site.server.url, site.server.url.replace("http", "ws"))
    assert all(url.startswith(ours) for url in asked)
    assert len(site.window.pages) == 1
    assert not keys, "nothing answers for a person"
    page.keyboard.type("k")
    wait_for(lambda: keys == [b"k"], "a key of the person")


def test_a_person_types_straight_into_it_and_gets_out_again(site_of: MakeSite) -> None:
    site = site_of()
    pane = begin(site, "print('ready')")
    site.log_in()
    page, part = open_terminal(site)
    wait_for(lambda: any("ready" in row for row in read(page)), "the screen")
    part.locator(".xterm-screen").click()
    page.keyboard.type("never")
    part.get_by_text("straight into the terminal").click()
    expect(part).to_have_attribute("data-types", "yes")
    page.keyboard.type("Typed <here>")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    wait_for(lambda: any("Typed <here>" in row for row in read(page)), "what was typed")
    picture(page, "typing")
    page.keyboard.press("F6")
    expect(part).to_have_attribute("data-types", "no")
    expect(part.get_by_label("off")).to_be_focused()
    page.keyboard.type("never")
    expect(part).to_have_attribute("data-state", "on")
    wait_for(lambda: is_same(page, site, pane), "the same screen")
    text = "\n".join(shown(site, pane))
    assert "Typed <here>" in text
    assert "never" not in text


def test_a_message_goes_through_the_queue(site_of: MakeSite) -> None:
    site = site_of()
    issue = started(site.stage)
    site.log_in()
    page = site.open(f"/page/session/dev-harb-{issue}")
    page.get_by_role("heading", name="Terminal").click()
    part = page.locator("#terminal")
    part.get_by_text("a message").click()
    part.get_by_label(f"Message to harb#{issue}; Enter sends it").fill("Only the cart.")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text(f"harb#{issue}")
    wait_for(lambda: [one for one in site.stage.told() if "Only the cart." in one], "the message")


def test_who_has_not_logged_in_looks_and_types_nothing(site_of: MakeSite) -> None:
    site = site_of()
    pane = begin(site, "print('ready')")
    page, part = open_terminal(site)
    wait_for(lambda: is_same(page, site, pane), "the same screen")
    expect(part.get_by_text("To type here, log in")).to_be_visible()
    assert part.locator("input, textarea:not(.xterm-helper-textarea)").count() == 0


def test_it_goes_on_when_the_server_or_the_agent_is_started_anew(
    site_of: MakeSite, tmp_path: Path
) -> None:
    site = site_of()
    begin(site, "print('first')")
    site.log_in()
    page, part = open_terminal(site)
    wait_for(lambda: any("first" in row for row in read(page)), "the screen")
    tmux = site.stage.project.tmux
    tmux.command("kill-session", "-t", f"={NAME}")
    expect(part).to_contain_text("Its terminal is gone")
    site.server.stop(signal.SIGKILL)
    expect(part).to_contain_text("not connected")
    start_session(tmux, NAME, site.stage.folder, ["sh", "-c", "echo second; exec cat"])
    port = ("--port", str(site.server.port))
    with serving(tmp_path, *port, base=site.stage.environment, clean=False, program=STARTED):
        wait_for(lambda: any("second" in row for row in read(page)), "the next one")
        page.get_by_role("heading", name="Terminal").click()
        wait_for(lambda: not clients(site), "it to be let go")
        page.get_by_role("heading", name="Terminal").click()
        wait_for(lambda: clients(site), "it to be shown again")
        page.close()
        wait_for(lambda: not clients(site), "it to be let go")


def clients(site: Site) -> list[str]:
    return site.stage.project.tmux.command("list-clients", "-F", "#{client_pid}").split()


def test_nothing_is_loaded_before_it_is_opened(site_of: MakeSite) -> None:
    site = site_of()
    begin(site, "print('ready')")
    page = site.window.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site.server.url + f"/page/session/{NAME}")
    page.wait_for_selector("body[data-live=on]")
    assert not [url for url in asked if "xterm.mjs" in url or "/page/terminal/" in url]
    assert not clients(site)
