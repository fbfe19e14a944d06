"""What goes on about a session on a node: its log that is followed, and the end of a turn."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from sm.plugins.hosts.messages import awaited_turns
from sm.store.paths import Root
from tests.helpers import REPOSITORY, wait_for
from tests.plugins.hosts.world import Machine, World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]

MakeWorld = Callable[..., World]
PROMPT = "❯"


@pytest.fixture
def world_of(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[MakeWorld]:
    with contextlib.ExitStack() as stack:
        yield lambda **how: stack.enter_context(living(tmp_path, **how))


def list_running(machine: Machine, word: str) -> list[str]:
    """The command lines of `sm` with that word that a login on the node has started."""
    found = []
    home = f"HOME={machine.place / 'home'}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes().split(b"\0")
            if word.encode() in line and home in (folder / "environ").read_bytes().split(b"\0"):
                found.append(b" ".join(line).decode())
    return found


def test_a_log_is_followed_and_nothing_of_that_stays_on_the_node(
    world_of: MakeWorld, tmp_path: Path
) -> None:
    world = world_of(auto=False)
    world.stage.file_issue()
    world.stage.poll()
    wait_for(world.stage.told, "the first prompt")
    sm = str(REPOSITORY / "bin" / "sm")
    out = tmp_path / "out"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [sm, "logs", "-f", "-n", "5", "harb", "1"],
            stdout=file,
            stderr=file,
            env=world.stage.environment,
            cwd=world.stage.folder,
        )
    wait_for(lambda: list_running(world.box, "logs"), "the command there")
    wait_for(lambda: PROMPT in out.read_text(), "what was there before")
    before = out.read_text().count(PROMPT)
    world.stage.sm("send", "harb#1", "go on")
    wait_for(lambda: out.read_text().count(PROMPT) > before, "the next prompt")
    assert "\r" not in out.read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0, out.read_text()
    wait_for(lambda: not list_running(world.box, "logs"), "its end there")


def test_an_agent_here_hears_of_the_end_of_a_turn_there(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    config = world.stage.config
    said = yaml.safe_load(config.read_text()) | {"runner": "local", "runners": {"heavy": "ssh"}}
    config.write_text(yaml.safe_dump(said))
    stage, forge = world.stage, world.project.forge
    here = stage.file_issue()
    there = forge.issues.add(
        "Heavy", body="Please.", labels=("backlog", "heavy"), author="ada"
    ).number
    stage.poll()
    wait_for(lambda: len(stage.told()) >= 2, "both prompts")
    asked = f"{REPOSITORY}/bin/sm send harb#{there} --notify-on-stop look"
    stage.sm("send", f"harb#{here}", f"Do this:\nrun: {asked}")
    wait_for(lambda: "look" in "".join(stage.told(session=f"dev-harb-{there}")), "the message")
    ran = wait_for(lambda: stage.told("ran"), "what the command has said")
    assert "harb#2" in ran[0], ran

    def is_told() -> bool:
        stage.poll()
        return "has ended its turn" in "".join(stage.told(session=f"dev-harb-{here}"))

    wait_for(is_told, "the end of the turn to be told", 60)
    assert not awaited_turns.list_all(world.project.directory)
    person = stage.sm("send", "--notify-on-stop", f"harb#{there}", "x", check=False)
    assert person.returncode == 2
    assert "a person waits with 'sm wait'" in person.stderr
