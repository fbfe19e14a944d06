"""A session on a node, steered by the page and by `sm top` over a real ssh."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from sm.sessions.machine import Machine
from sm.store.paths import Root
from tests.helpers import REPOSITORY, wait_for
from tests.plugins.hosts.world import World, living
from tests.plugins.page.client import Browser, make_server
from tests.plugins.top.persons import a_screen
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]

MakeWorld = Callable[..., World]
PATH = "/page/session/dev-harb-1"


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[World]:
    with living(tmp_path, auto=False) as made:
        made.stage.file_issue()
        made.stage.poll()
        wait_for(made.stage.told, "the first prompt")
        yield made


def open_browser(world: World) -> Browser:
    project = world.project
    browser = Browser(make_server(Machine(project.config, project.config.source)))
    browser.log_in()
    return browser


def ask(world: World, what: str) -> None:
    world.box.write_phase(1, f"PHASE:escalate\nReason: {what}")


def tells_itself(world: World) -> bool:
    """Whether the node says that a person hears of it there."""
    (row,) = json.loads(world.stage.sm("status", "--json").stdout)[0]["sessions"]
    return bool(row["inside"]["told"])


def await_told(world: World, text: str) -> None:
    wait_for(lambda: text in "".join(world.stage.told()), f"'{text}'")


def test_the_page_answers_and_steers_a_session_on_a_node(world: World) -> None:
    browser = open_browser(world)
    about = {"session": "dev-harb-1", "project": "harb", "number": "1"}
    ask(world, "which colour?")
    wait_for(lambda: "which colour?" in browser.get("/").text, "the question")
    assert "<dt>Runs on</dt><dd>box</dd>" in browser.get(PATH).text
    assert not tells_itself(world)
    said = yaml.safe_load(world.box.config.read_text())
    world.box.config.write_text(yaml.safe_dump(said | {"notify_command": "true"}))
    wait_for(lambda: tells_itself(world), "a machine that tells its needs itself")
    assert "answered #1" in browser.act(act="reply", text="blue\n--no option", **about).text
    await_told(world, "--no option")
    assert "Message to harb#1 " in browser.act(act="send", text="only the cart", **about).text
    await_told(world, "only the cart")
    wait_for(lambda: "only the cart" in browser.get(f"{PATH}/messages").text, "it in the list")
    assert "took the issue" in browser.get(f"{PATH}/story").text
    assert "❯" in browser.get(f"{PATH}/screen").text
    worktree = Path(world.box.session(1).worktree)
    (worktree / "new.txt").write_text("a line that is new\n")
    ask(world, "and now?")  # by which a turn has ended
    wait_for(lambda: "a line that is new" in browser.get(f"{PATH}/diff").text, "the changes")
    assert "rests until" in browser.get(PATH).text
    assert "paused" in browser.act(act="pause", **about).text
    wait_for(lambda: "Resume …" in browser.get(PATH).text, "the pause")
    browser.act(act="resume", **about)
    world.box.sshd.stop(cut=True)
    began = time.monotonic()
    assert browser.get(PATH).status_code == 200
    assert browser.get("/").status_code == 200
    assert time.monotonic() - began < 5.0
    assert browser.act(act="kill", **about).status_code == 409
    assert "queued" in browser.act(act="send", text="the last", **about).text
    assert "the last" in browser.get(f"{PATH}/messages").text
    world.box.sshd.start()

    def is_there() -> bool:
        world.stage.poll()
        return "the last" in "".join(world.stage.told())

    wait_for(is_there, "the message", 90)
    assert "ended dev-harb-1" in browser.act(act="kill", **about).text


def test_sm_top_answers_and_enters_a_session_on_a_node(world: World) -> None:
    ask(world, "which colour?")
    argv = [str(REPOSITORY / "bin" / "sm"), "top"]
    with a_screen(argv, world.stage.environment, world.stage.folder, (120, 30)) as screen:
        screen.await_text("which colour?")
        screen.await_text("on box")
        screen.press("r")
        screen.await_text("reply to harb#1")
        screen.await_text("❯")  # the end of its terminal, which the node shows
        screen.type("blue")
        screen.press("Enter")
        screen.await_text("answered #1")
        await_told(world, "blue")
        screen.press("p")
        screen.await_text("pause harb#1?")
        screen.press("Enter")
        screen.await_text("paused")
        screen.press("Enter")
        screen.await_text("took the issue")
        screen.press("Escape")
        screen.press("a")
        screen.await_text("harb #1")  # tmux's own line there
        screen.press("C-b")
        screen.press("d")
        screen.await_text("quit")
