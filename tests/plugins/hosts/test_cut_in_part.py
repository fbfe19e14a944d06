"""A node that does not reach git's remote, or home, but the other of them: nobody tells it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sm.plugins.hosts.messages.outbox import list_kept
from sm.plugins.hosts.ssh.client import read_trouble
from sm.plugins.hosts.ssh.node import find_node
from sm.store.paths import Root
from tests.cable import BESIDE, NEAR, Cable
from tests.e2e.stage import count_merges
from tests.helpers import wait_for
from tests.plugins.hosts.test_cut_off import SETTINGS, find, push
from tests.plugins.hosts.world import World, living
from tests.sshd import MISSING, PROGRAM

pytestmark = [
    pytest.mark.long_lived,
    pytest.mark.skipif(PROGRAM is None, reason=MISSING),
]
HOME, REMOTE = NEAR, BESIDE


@pytest.fixture
def world(tmp_path: Path, root: Root, tmux_socket: str, cable: Cable) -> Iterator[World]:
    assert root.path
    assert tmux_socket
    with living(tmp_path, auto=False, names=("box", "oak"), cable=cable, **SETTINGS) as made:
        yield made


def begin(world: World) -> int:
    """An issue on `box`, with work that was pushed, and its pull request."""
    stage = world.stage
    issue = stage.file_issue()
    stage.poll()
    wait_for(stage.told, "the first prompt")
    assert find(world, issue).host == "box"
    push(world.box, issue, f"work-{issue}.txt")
    world.box.write_phase(issue, "PHASE:awaiting_ci")
    pulls = stage.project.forge.pulls
    wait_for(lambda: pulls.find_newest(f"fix/{issue}"), "its pull request")
    return issue


def test_a_node_that_does_not_reach_the_remote_is_steered_and_acts_later(
    world: World, cable: Cable
) -> None:
    stage, issue = world.stage, begin(world)
    cable.cut_from(REMOTE)
    world.box.write_phase(issue, "PHASE:awaiting_review")  # what would be merged at once
    sent = stage.sm("send", f"harb#{issue}", "mind the colour").stdout
    assert "does not answer" not in sent
    wait_for(lambda: "mind the colour" in stage.told(), "the message", 60)
    for _ in range(3):  # longer than `lost_after`
        stage.poll()
    assert find(world, issue).attempt == 1, "it answers, so it is not lost"
    assert "does not answer" not in stage.sm("status").stdout
    assert not stage.merged(issue)
    cable.join()
    wait_for(lambda: stage.merged(issue), "the merge", 120)
    assert count_merges(stage, issue) == 1


def test_a_node_that_does_not_reach_home_goes_on_to_the_merge(world: World, cable: Cable) -> None:
    stage, issue = world.stage, begin(world)
    cable.cut_from(HOME)
    assert "does not answer" in stage.sm("send", f"harb#{issue}", "mind the colour").stdout
    world.box.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: stage.merged(issue), "the merge, without home", 120)
    wait_for(lambda: not world.box.has_sessions(), "the end of the session", 60)
    cable.join()

    def is_known() -> bool:
        stage.poll(check=False)
        return not world.project.directory.placements.exists() or not find_all(world)

    wait_for(is_known, "home to know", 60)
    assert count_merges(stage, issue) == 1
    assert not list_kept(world.project.directory), "it was told that it did not arrive"


def test_a_node_that_does_not_reach_home_ends_once_it_is_overtaken(
    world: World, cable: Cable
) -> None:
    stage, issue = world.stage, begin(world)
    cable.cut_from(HOME)

    def is_moved() -> bool:
        stage.poll(check=False)
        return find(world, issue).attempt == 2 and bool(find(world, issue).handle)

    wait_for(is_moved, "the other host to have it", 60)
    assert find(world, issue).host == "oak"
    world.box.write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: not world.box.has_sessions(), "the session there to end by itself", 60)
    assert not stage.merged(issue), "nobody has said to the successor that it may be"
    cable.join()


def test_a_node_that_was_killed_ends_what_was_taken_over_once_it_reaches_the_remote(
    world: World, cable: Cable
) -> None:
    stage, issue = world.stage, begin(world)
    world.box.kill()

    def is_moved() -> bool:
        stage.poll(check=False)
        return find(world, issue).attempt == 2 and bool(find(world, issue).handle)

    wait_for(is_moved, "the other host to have it", 60)
    world.machines["oak"].write_phase(issue, "PHASE:awaiting_review")
    wait_for(lambda: stage.merged(issue), "the merge", 120)
    cable.cut_from(REMOTE)
    world.box.sshd.start()
    node = find_node(world.project.config, "box")

    def is_heard() -> bool:
        stage.poll(check=False)
        return read_trouble(node.folder) is None and not find_all(world)

    wait_for(is_heard, "home to hear it, and to have nothing more to ask", 120)
    assert world.box.has_sessions()
    cable.join()

    def has_ended() -> bool:
        stage.poll(check=False)
        return not world.box.has_sessions()

    wait_for(has_ended, "the session to end that nobody asks about", 120)


def find_all(world: World) -> list[Path]:
    """What is on record as worked on elsewhere."""
    return list(world.project.directory.placements.glob("*.json"))
