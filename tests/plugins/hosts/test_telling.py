"""What needs a person on a node, or because of it, is told at home: once, and at once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from sm.store.paths import Root
from tests.helpers import wait_for
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]

MakeWorld = Callable[..., World]


@pytest.fixture
def world_of(tmp_path: Path, root: Root, tmux_socket: str) -> Iterator[MakeWorld]:
    with contextlib.ExitStack() as stack:
        yield lambda **how: stack.enter_context(living(tmp_path, **how))


def have_told(world: World, command: str) -> None:
    """Have the command told at home, and nowhere else."""
    said = yaml.safe_load(world.stage.config.read_text()) | {"notify_command": command}
    world.stage.config.write_text(yaml.safe_dump(said))


def list_host_needs(world: World) -> list[str]:
    needs = json.loads(world.stage.sm("needs", "--json", check=False).stdout)
    return [one["text"] for one in needs if one["kind"] == "host"]


def test_a_question_and_a_refused_key_are_told_once_by_the_command_at_home(
    world_of: MakeWorld,
) -> None:
    world = world_of(auto=False)
    told = world.stage.folder / "told"
    have_told(world, f"cat >> {told}")
    there = yaml.safe_load(world.box.config.read_text()) | {"escalation": {"remind": "1s"}}
    world.box.config.write_text(yaml.safe_dump(there))
    issue = world.stage.file_issue()
    world.stage.poll()
    wait_for(world.stage.told, "the first prompt")
    world.box.write_phase(issue, "PHASE:escalate\nReason: which colour?")

    def is_told(text: str) -> bool:
        world.stage.poll(check=False)
        return told.exists() and text in told.read_text()

    wait_for(lambda: is_told("which colour?"), "the question to be told", 60)
    wait_for(lambda: is_told("harb#1 still needs a person: "), "a reminder", 60)
    keys = world.box.sshd.folder / "authorized_keys"
    kept = keys.read_text()
    keys.write_text("")
    world.box.sshd.stop(cut=True)
    world.box.sshd.start()
    wait_for(lambda: is_told("Permission denied"), "the refused key to be told", 60)
    (text,) = list_host_needs(world)
    assert text.startswith("Host 'box' does not answer, and gets no sessions: ")
    world.stage.poll(check=False)
    lines = told.read_text().splitlines()
    assert len([line for line in lines if line.startswith("harb#1 needs a person: ")]) == 1
    assert len([line for line in lines if line.endswith("sm host check box")]) == 1, lines
    keys.write_text(kept)

    def is_over() -> bool:
        world.stage.poll(check=False)
        return not list_host_needs(world)

    wait_for(is_over, "the host to be back", 60)


def test_a_host_that_refuses_us_from_the_beginning_is_told_of(world_of: MakeWorld) -> None:
    world = world_of(auto=False)
    (world.box.sshd.folder / "authorized_keys").write_text("")
    world.stage.file_issue()
    world.stage.poll(check=False)
    (text,) = list_host_needs(world)
    assert "Permission denied" in text
