"""Sessions on other machines: a message to one, and `sm status` while one of five is silent."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from sm.adapters import procfs
from sm.issues import placements
from sm.issues.runners import Placement
from sm.plugins.hosts.folder import LinkFiles
from sm.store.files import read_json
from sm.store.paths import Root, name_session
from tests.bench.measure import Bench, Figure, Take, in_turns, measure_memory_mb, run
from tests.helpers import REPOSITORY, wait_for
from tests.plugins.hosts.conftest import find_holder
from tests.plugins.hosts.world import World, living

HOSTS = 5
STATUS_MS = 1000
SM = str(REPOSITORY / "bin" / "sm")


def figures(bench: Bench) -> Iterator[Figure]:
    """Each beside the same on the node itself, or without the silent one."""
    state = bench.folder / "state"
    state.mkdir(mode=0o700)
    os.environ["SM_STATE_ROOT"] = str(state)
    os.environ["SM_TMUX_SOCKET"] = f"sm-bench-{os.getpid()}"
    with living(bench.folder / "world", auto=False) as world:
        world.stage.file_issue()
        world.stage.poll()
        wait_for(world.stage.told, "the first prompt")
        here, there = in_turns(bench.rounds(15, 5), _send_on_node(world), _send_from_here(world))
        yield Figure(
            name="sm send to a session on another host",
            unit="ms",
            samples=there,
            beside="sm send there",
            others=here,
        )
        yield from _figure_status(bench, world)


def _send_on_node(world: World) -> Take:
    return lambda: _time([SM, "send", "harb#1", "hello"], world.box.environment)


def _send_from_here(world: World) -> Take:
    return lambda: _time([SM, "send", "harb#1", "hello"], world.stage.environment)


def _time(argv: list[str], env: dict[str, str]) -> float:
    return run(argv, env).wall_s * 1000


def _figure_status(bench: Bench, world: World) -> Iterator[Figure]:
    """The hosts are one machine under several names; the silent one takes calls, says nothing."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(16)
        _add_hosts(world.stage.config, mute.getsockname()[1])
        for number in range(2, HOSTS + 1):
            _place(world, number)
        status = [sys.executable, "-Im", "sm", "status"]
        env = world.stage.environment
        run(status, env)  # its links are started
        time.sleep(2.0)
        [first] = in_turns(bench.rounds(5, 3), lambda: _time(status, env))
        trouble = world.project.root.plugins / "hosts" / f"box{HOSTS}" / "trouble.json"
        wait_for(trouble.exists, "ssh to give up")
        alone = env | {"SM_CONFIG": str(world.box.config)}
        [known, without] = in_turns(
            bench.rounds(9, 3), lambda: _time(status, env), lambda: _time(status, alone)
        )
        ours = list_ours(world.project.root)
    yield Figure(
        name=f"channels to {HOSTS - 1} hosts: {len(ours)} processes with ssh (PSS)",
        unit="MB",
        samples=[measure_memory_mb(ours)],
    )
    name = f"sm status over {HOSTS} hosts, one silent"
    yield Figure(name=name, unit="ms", samples=first, budget=STATUS_MS)
    yield Figure(
        name="    once that is known",
        unit="ms",
        samples=known,
        beside="without hosts",
        others=without,
        budget=STATUS_MS,
    )


def list_ours(root: Root) -> list[int]:
    """Return the process that has the channels, the connections of ssh, and what uses these."""
    process = procfs.find(find_holder(LinkFiles(root).lock))
    assert process
    masters = [
        read_json(path, tuple[int, int]) for path in root.plugins.glob("hosts/*/master.json")
    ]
    family = {one.pid for one in procfs.find_family([process])}
    return sorted(family | {found[0] for found in masters if found})


def _add_hosts(config: Path, mute: int) -> None:
    said = yaml.safe_load(config.read_text())
    hosts = said["hosts"]["ssh"]
    for number in range(2, HOSTS):
        hosts[f"box{number}"] = hosts["box"]
    hosts[f"box{HOSTS}"] = hosts["box"] | {"options": [f"Port={mute}"]}
    config.write_text(yaml.safe_dump(said))


def _place(world: World, number: int) -> None:
    session = name_session("harb", number)
    made = Placement(
        "harb", number, session, "ssh", f"box{number}", 1, "c" * 40, session, time.time()
    )
    placements.keep(world.project.directory, made)
