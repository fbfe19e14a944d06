"""An idle monitor over a minute: its share of a processor, its memory, its forks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sm.sessions import registry
from sm.store import lock
from tests.bench.crowd import Crowd, make_crowd
from tests.bench.measure import Bench, Figure
from tests.helpers import wait_for
from tests.shell import BIN, stand_in

BUDGET_PERCENT = 0.1
BUDGET_MB = 5.0
WINDOW_S = 10.0
FAR = "9999999999"
TICK_HZ = os.sysconf("SC_CLK_TCK")

BY_HAND = """
while sleep 1; do
  tmux -L "$2" has-session -t "$3" 2>/dev/null
  phase=$(head -1 "$1" 2>/dev/null | tr -d '[:space:]')
done
"""
"""The loop that the protocol's document suggests, as often as ours looks."""


def figures(bench: Bench) -> Iterator[Figure]:
    """The monitor and the loop by hand side by side, over the same seconds."""
    crowd = make_crowd(bench.folder / "crowd", 1, awaiting=False, watched=False)
    with crowd.held, _monitor(crowd) as ours, _by_hand(crowd) as theirs:
        pids = (ours.pid, theirs.pid)
        shares: list[list[float]] = [[], []]
        begun = [_children_faults(pid) for pid in pids]
        for _ in range(bench.rounds(6, 2)):
            _share_of_processor(pids, shares, WINDOW_S if not bench.quick else WINDOW_S / 2)
        forked = [_children_faults(pid) - before for pid, before in zip(pids, begun, strict=True)]
        memory = {key: [_memory_mb(pid, key) for pid in pids] for key in ("Rss", "Pss")}
    beside = "sleep, has-session, head, tr"
    yield Figure(
        name="idle monitor, share of a processor",
        unit="%",
        samples=shares[0],
        budget=BUDGET_PERCENT,
        beside=beside,
        others=shares[1],
    )
    for name, key in (("memory (RSS)", "Rss"), ("memory not shared (PSS)", "Pss")):
        yield Figure(
            name=f"idle monitor, {name}",
            unit="MB",
            samples=memory[key][:1],
            budget=BUDGET_MB,
            beside=beside,
            others=memory[key][1:],
        )
    yield Figure(
        name="idle monitor, page faults of children (0: no fork)",
        unit="",
        samples=[float(forked[0])],
        budget=0.0,
        beside=beside,
        others=[float(forked[1])],
    )


@contextmanager
def _monitor(crowd: Crowd) -> Iterator[subprocess.Popen[bytes]]:
    """The monitor of a session to which nothing happens; its reactor would spoil the figures."""
    project = crowd.project
    (session,) = registry.list_for(project)
    python = stand_in(crowd.stage.folder / "python", "exit 1")
    session.dir.next.write_text(f"{FAR}\n")
    watched = (project.root.phase("harb", 1), project.root.idle_marker(session.name))
    session.dir.watch.write_text("".join(f"{path}\n" for path in watched))
    session.dir.shared.write_text(f"{project.directory.path}\n{project.forge.signs()[0]}\n")
    project.directory.due.write_text(f"{FAR}\n")
    project.directory.snapshot.touch()
    session.dir.seen.touch()
    env = os.environ | {"SM_PYTHON": str(python), "SM_STATE_ROOT": str(project.root.path)}
    argv = ["bash", str(BIN / "agent-session"), "monitor", "harb", "1"]
    with subprocess.Popen(argv, env=env) as process:
        try:
            wait_for(lambda: lock.is_held(session.dir.monitor_lock), "the monitor to be at work")
            time.sleep(2)  # what it does once is not what it does while idle
            yield process
            said = session.dir.monitor_log.read_text()
            assert not said, said
        finally:
            registry.forget(project.root, session)  # it ends with its session


@contextmanager
def _by_hand(crowd: Crowd) -> Iterator[subprocess.Popen[bytes]]:
    phase_file = crowd.project.root.phase("harb", 1)
    socket = os.environ["SM_TMUX_SOCKET"]
    argv = ["bash", "-c", BY_HAND, "monitor", str(phase_file), socket, "dev-harb-1"]
    with subprocess.Popen(argv, stderr=sys.stderr) as process:
        try:
            yield process
        finally:
            process.kill()


def _share_of_processor(pids: tuple[int, ...], shares: list[list[float]], window_s: float) -> None:
    before, started = [_processor_s(pid) for pid in pids], time.monotonic()
    time.sleep(window_s)
    took = time.monotonic() - started
    for pid, at_first, found in zip(pids, before, shares, strict=True):
        found.append((_processor_s(pid) - at_first) / took * 100)


def _processor_s(pid: int) -> float:
    """Seconds of a processor that a process has used, and all of its children that have ended.

    Its own to the nanosecond (schedstat), as a tick would be more than an idle second costs.
    """
    own = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    fields = _stat(pid)
    return own + (int(fields[13]) + int(fields[14])) / TICK_HZ


def _children_faults(pid: int) -> int:
    """Page faults of the children that it has waited for (cminflt): no process has none."""
    return int(_stat(pid)[8])


def _stat(pid: int) -> list[str]:
    """The fields of proc(5) behind the name, the state first."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _memory_mb(pid: int, key: str) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError(f"no {key} of process {pid}")
