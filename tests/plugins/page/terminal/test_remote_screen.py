"""The terminal of a session on a node, over a real ssh, by a client without a screen."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sm.adapters.tmux import NoServerError, Tmux
from sm.messages.presence import observe_hands
from sm.plugins.page.terminal import wire
from sm.plugins.page.terminal.remote_screen import VIEWS_THERE
from sm.store.paths import Root
from tests.cable import Cable, strung
from tests.helpers import wait_for
from tests.plugins.hosts.world import Machine, World, living
from tests.plugins.page.watcher import Watcher, ending, log_in
from tests.serving import Served, serving
from tests.sshd import MISSING, PROGRAM
from tests.viewer import Viewer

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]

NAME = "dev-harb-1"


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[World]:
    assert (root.path, bool(tmux_socket)) == (tmp_path / "state", True)
    with living(tmp_path, auto=False) as made:
        begin(made)
        yield made


def begin(world: World) -> None:
    """Have an agent at work on the node."""
    world.stage.file_issue()
    world.stage.poll()
    wait_for(world.stage.told, "the first prompt")


@pytest.fixture
def server(world: World, tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, "--open", base=world.stage.environment, clean=False) as served:
        yield served


def watch(server: Served, browser: str = "") -> Watcher:
    return Watcher(server, NAME, browser=browser)


def tmux_of(machine: Machine) -> Tmux:
    return Tmux(machine.socket)


def window(machine: Machine) -> str:
    facts = "#{window_width}x#{window_height} #{window-size}"
    return tmux_of(machine).command("display-message", "-p", "-t", f"={NAME}:", facts).strip()


def clients(machine: Machine) -> list[str]:
    try:
        said = tmux_of(machine).command("list-clients", "-F", "#{client_flags}")
    except NoServerError:  # its agent is just started anew
        return []
    return said.splitlines()


def relays(machine: Machine) -> list[int]:
    """What shows a terminal there for somebody elsewhere."""
    return [one.pid for one in machine.processes() if "sm terminal harb" in spell(one.pid)]


def press(machine: Machine) -> None:
    """Have the agent there be told something, as by a paste."""
    tmux_of(machine).command("set-buffer", "-b", "line", "go on")
    tmux_of(machine).command("paste-buffer", "-dp", "-b", "line", "-t", f"={NAME}:")
    tmux_of(machine).command("send-keys", "-t", f"={NAME}:", "Enter")


def count_prompts(machine: Machine) -> int:
    """The agent shows another one for each key."""
    return tmux_of(machine).command("capture-pane", "-p", "-t", f"={NAME}:").count("❯")


def spell(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:  # it has ended
        return ""


def ends_here(server: Served) -> list[int]:
    """What the server has begun to have one shown."""
    path = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def leave_nothing(machine: Machine) -> None:
    wait_for(lambda: not clients(machine), "no client left there")
    wait_for(lambda: not relays(machine), "no process left there")


def test_several_see_it_and_its_window_stays_as_it_is(server: Served, world: World) -> None:
    box = world.box
    before = window(box)
    columns, rows = map(int, before.partition(" ")[0].split("x"))
    watchers = [watch(server) for _ in range(3)]
    for watcher in watchers:
        word = watcher.wait_for_word("begin")
        assert word["size"] == {"columns": columns, "rows": rows + 1, "below": 1}
        watcher.wait_for("❯".encode())
        assert not word.get("types")
    assert window(box) == before
    assert len(clients(box)) == len(relays(box)) == 3
    assert all("read-only" in line and "ignore-size" in line for line in clients(box))
    world.stage.sm("send", "harb#1", "only the cart")
    for watcher in watchers:
        watcher.wait_for(b"working")
    person = Viewer(tmux_of(box).attach_argv(NAME), (100, 31))
    for watcher in watchers:
        assert watcher.wait_for_word("size")["size"] == {"columns": 100, "rows": 31, "below": 1}
    person.close()
    for watcher in watchers:
        watcher.close()
    leave_nothing(box)
    wait_for(lambda: not ends_here(server), "no process left here")
    assert window(box) == "100x30 latest"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_leaves_no_process_there(
    server: Served, world: World, number: signal.Signals
) -> None:
    watcher = watch(server)
    watcher.wait_for("❯".encode())
    ends = ends_here(server)
    assert (len(ends), len(relays(world.box))) == (1, 1)
    server.stop(number)
    leave_nothing(world.box)
    wait_for(lambda: not any(map(spell, ends)), "no process left here")


def test_so_many_of_a_host_are_shown_live_and_the_next_as_text(
    server: Served, world: World
) -> None:
    watchers = [watch(server) for _ in range(VIEWS_THERE)]
    for watcher in watchers:
        watcher.wait_for("❯".encode())
    late = watch(server)
    assert "are open already" in ending(late)
    assert late.words[-1]["what"] == "plain"
    watchers.pop().close()

    def is_shown() -> bool:
        one = watch(server)
        word = one.hear() or {}
        one.close()
        return word.get("what") == "begin"

    wait_for(is_shown, "room for one more", every_s=0.5)
    for watcher in watchers:
        watcher.close()
    leave_nothing(world.box)
    assert world.stage.sm("tail", "harb#1").stdout


def test_a_browser_that_has_logged_in_types_and_is_a_person_there(
    server: Served, world: World
) -> None:
    box, session = world.box, world.box.session(1)
    before = count_prompts(box)
    for browser in ("", log_in(server)):
        watcher = watch(server, browser)
        watcher.wait_for_word("begin")
        assert not observe_hands(session).attached
        watcher.want_to_type()
        if not browser:
            assert watcher.wait_for_word("refused")["why"]
            watcher.type(b"never")
            watcher.close()
            leave_nothing(box)
            assert count_prompts(box) == before
    assert watcher.wait_for_word("begin")["types"] is True
    assert observe_hands(session).attached
    came_at = time.time()

    def typed() -> bool:
        watcher.type(b"x")
        return observe_hands(session).typed_at >= came_at

    wait_for(typed, "its keys to count as a person's there", every_s=0.3)
    assert count_prompts(box) > before
    watcher.want_to_look()
    assert not watcher.wait_for_word("begin").get("types")
    assert not observe_hands(session).attached
    watcher.close()
    leave_nothing(box)


def test_an_older_sm_there_has_it_shown_as_text(server: Served, world: World) -> None:
    stub = world.box.place / "older"
    real = world.box.host["sm"]
    stub.write_text(
        f'#!/bin/sh\n[ "$1" != terminal ] || {{ echo "sm: no such command \'$1\'" >&2; exit 2; }}\n'
        f'exec {real} "$@"\n'
    )
    stub.chmod(0o755)
    said = yaml.safe_load(world.stage.config.read_text())
    said["hosts"]["ssh"]["box"]["sm"] = str(stub)
    world.stage.config.write_text(yaml.safe_dump(said))
    base = world.stage.environment
    with serving(world.stage.folder, "--open", base=base, clean=False) as served:
        late = watch(served)
        assert ending(late) == "'box' cannot show it live: its sm is older"
        assert late.words[-1]["what"] == "plain"


def test_a_terminal_that_is_gone_there_is_said_and_the_next_shows_by_itself(
    server: Served, world: World
) -> None:
    watcher = watch(server)
    watcher.wait_for("❯".encode())
    tmux_of(world.box).command("kill-session", "-t", f"={NAME}")
    assert "gone" in watcher.wait_for_word("gone")["why"]
    wait_for(lambda: world.box.sm("recover", "harb", "1").returncode == 0, "another agent")
    assert watcher.wait_for_word("begin")
    watcher.close()
    leave_nothing(world.box)


@pytest.fixture
def cable() -> Iterator[Cable]:
    with strung() as made:
        yield made


def test_a_node_that_is_cut_off_is_said_and_shows_again_when_it_is_back(
    tmp_path: Path, root: Root, tmux_socket: str, cable: Cable
) -> None:
    assert (root.path, bool(tmux_socket)) == (tmp_path / "state", True)
    with living(tmp_path, auto=False, cable=cable) as world:
        begin(world)
        box = world.box
        with serving(tmp_path, "--open", base=world.stage.environment, clean=False) as server:
            watcher = watch(server)
            watcher.wait_for("❯".encode())
            size = window(box)
            began = time.monotonic()
            cable.cut()
            word = watcher.wait_for_word("gone")
            assert "'box' does not show it" in word["why"]
            assert time.monotonic() - began < wire.SILENT_S + 10
            leave_nothing(box)  # it finds that nobody is there any more, as nobody tells it
            cable.join()
            assert watcher.wait_for_word("begin")
            watcher.wait_for("❯".encode())
            press(box)
            watcher.wait_for(b"working")
            assert window(box) == size
            watcher.close()
            leave_nothing(box)
            wait_for(lambda: not ends_here(server), "no process left here")
