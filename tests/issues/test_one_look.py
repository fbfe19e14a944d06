"""One look at the forge does for all hosts: ten sessions on five ask no more than on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sm.store.paths import Root
from tests.e2e.stage import Stage, make_stage
from tests.forges.sides import RemoteSide, remote_side
from tests.hub import Hub
from tests.issues.story import Count, World, play

SESSIONS, HOSTS = 10, 5


@pytest.fixture
def stage(tmp_path: Path, root: Root, tmux_socket: str) -> Stage:
    assert root.path
    assert tmux_socket
    return make_stage(tmp_path, auto=False, settings={"ci": {"poll": "1h"}, "poll_interval": "1m"})


@contextmanager
def on(kind: str, stage: Stage, name: str) -> Iterator[RemoteSide]:
    hub = Hub(stage.config, stage.project.settings, stage.repository)
    folder = stage.folder / name
    with remote_side(kind, hub, folder) as side:
        side.admit("ada", "rita")
        yield side


def tell(kind: str, stage: Stage, hosts: int, first: int = 1) -> Count:
    """What the forge is asked in the story, with the sessions on so many hosts, or here."""
    with on(kind, stage, f"forge-{hosts}") as side:
        for number in range(1, first + SESSIONS):
            issue = side.state.add(f"issue {number}", "Do it.", "ada")
            side.state.label(issue, ["in-progress"])
            if number < first:
                side.state.close(issue)
        world = World(stage, side, range(first, first + SESSIONS), hosts)
        with world.granting():
            play(world)
        return world.count()


def test_five_hosts_ask_no_more_than_one_machine_and_what_they_write(stage: Stage) -> None:
    alone, away = tell("github", stage, 0), tell("github", stage, HOSTS, first=1 + SESSIONS)
    print(f"{alone} on one machine, {away} on {HOSTS} hosts")
    assert away.writes == alone.writes
    assert away.all <= alone.all + away.writes
