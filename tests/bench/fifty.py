"""Fifty hosts with twenty sessions each: what this machine has to do for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sm.issues.placements import list_placements
from sm.plugins.hosts.folder import LinkFiles
from sm.store.paths import Root
from tests.bench.measure import Bench, Figure, measure_memory_mb
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git
from tests.plugins.hosts.conftest import find_holder
from tests.plugins.hosts.crowd import gathered

HOSTS, SESSIONS = 50, 20
BEGIN_S = 2.0
"""What a node takes to begin a session, nobody else being at work on it."""
REMOTE_S = 0.3
"""What a connection of git to a forge elsewhere takes."""
MEMORY_MB, BEGUN_S, TICK_S = 100.0, 120.0, 10.0
POLL = [sys.executable, "-Im", "sm", "poll"]


def figures(bench: Bench) -> Iterator[Figure]:
    """The nodes are one process without a machine behind it, and all else is as it is."""
    hosts, sessions = (bench.rounds(HOSTS, HOSTS), bench.rounds(SESSIONS, 2))
    root = Root(bench.folder / "state")
    root.path.mkdir(mode=0o700)
    os.environ["SM_STATE_ROOT"] = str(root.path)
    stage = make_stage(bench.folder, auto=False)
    slow_down(stage)
    for _ in range(hosts * sessions):
        stage.file_issue()
    with gathered(bench.folder, stage.config, hosts, sessions, begin_s=BEGIN_S) as (crowd, path):
        env = stage.environment | {"PATH": f"{path}:{os.environ['PATH']}"}
        try:
            began = time.monotonic()
            while crowd.count_begun() < hosts * sessions:
                tick(env)
            begun_s = time.monotonic() - began
            assert len(list_placements(stage.project.directory)) == hosts * sessions
            before = sum(crowd.asked.values())
            ticks = [tick(env) for _ in range(bench.rounds(7, 3))]
            asked = (sum(crowd.asked.values()) - before) / len(ticks) / hosts
            memory, processes = measure_links(root)
        finally:
            end(root)
    words = f"{hosts} hosts, {hosts * sessions} sessions"
    yield Figure(name=f"{words}: all begun", unit="s", samples=[begun_s], budget=BEGUN_S)
    yield Figure(name="    a tick", unit="s", samples=ticks, budget=TICK_S)
    yield Figure(name="    a host is asked in a tick", unit="", samples=[asked])
    yield Figure(
        name=f"    {processes:.0f} processes that have the channels (PSS), without ssh",
        unit="MB",
        samples=[memory],
        budget=MEMORY_MB,
    )


def slow_down(stage: Stage) -> None:
    """Have each connection of git take as long as over a network."""
    for name, program in (("uploadpack", "git-upload-pack"), ("receivepack", "git-receive-pack")):
        git(
            stage.repository.clone,
            "config",
            f"remote.origin.{name}",
            f"sleep {REMOTE_S}; {program}",
        )


def tick(env: dict[str, str]) -> float:
    """Have one done; return its seconds."""
    began = time.monotonic()
    subprocess.run(POLL, env=env, capture_output=True, check=True)
    return time.monotonic() - began


def measure_links(root: Root) -> tuple[float, float]:
    """Return the megabytes of the processes that have channels, and how many there are."""
    holders = {find_holder(path) for path in list_locks(root)} - {0}
    return measure_memory_mb(holders), float(len(holders))


def list_locks(root: Root) -> list[Path]:
    return [LinkFiles(root).lock]


def end(root: Root) -> None:
    """End what has the channels, and what hears of costs after a tick."""
    for path in (root.plugins / "cost" / "nodes.ticks.lock", *list_locks(root)):
        if pid := find_holder(path):
            os.kill(pid, signal.SIGKILL)
