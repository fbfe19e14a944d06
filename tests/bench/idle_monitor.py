"""An idle monitor over a minute: its share of a processor, its memory, its forks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sm.issues.poll import tick
from sm.sessions.session import IssueSession
from tests.bench.measure import Bench, Figure
from tests.bench.reaction import quiet_stage
from tests.helpers import monitor_of, wait_for

BUDGET_PERCENT = 0.1
BUDGET_MB = 5.0
WINDOW_S = 10.0
QUIET_S = 3.0
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
    with _idle_session(bench) as (session, ours), _by_hand(session) as theirs:
        pids = (ours, theirs)
        shares: list[list[float]] = [[], []]
        begun = [_children_faults(pid) for pid in pids]
        for _ in range(bench.rounds(6, 2)):
            _share_of_processor(pids, shares, bench.seconds(WINDOW_S))
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
def _idle_session(bench: Bench) -> Iterator[tuple[IssueSession, int]]:
    """A session to which nothing happens, and the process of its monitor: without a child."""
    stage = quiet_stage(bench.folder)
    try:
        issue = stage.file_issue()
        list(tick(stage.project))
        wait_for(stage.told, "the task")
        session = stage.session(issue)
        _wait_for_last_pass(session)
        for never in (session.dir.next, stage.project.directory.due):
            never.write_text(f"{FAR}\n")
        monitor = wait_for(lambda: monitor_of(session), "the monitor")
        assert monitor
        _end_children(monitor)
        time.sleep(bench.seconds(2.0))  # what it does once is not what it does while idle
        yield session, monitor
        said = session.dir.monitor_log.read_text()
        assert not said, said
    finally:
        stage.end()


def _wait_for_last_pass(session: IssueSession) -> None:
    """Until there was none for a while: what has begun with the session is over."""
    since, before = time.monotonic(), 0

    def no_more() -> bool:
        nonlocal since, before
        if (now := session.dir.seen.stat().st_mtime_ns) != before:
            since, before = time.monotonic(), now
        return time.monotonic() > since + QUIET_S

    wait_for(session.dir.seen.exists, "the first pass")
    wait_for(no_more, "the last pass")


def _end_children(pid: int) -> None:
    """What serves its passes stays a minute; its end would count as a fork of the idle monitor."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for child in children.read_text().split():
        os.kill(int(child), signal.SIGKILL)
    wait_for(lambda: not children.read_text(), "the end of its children")


@contextmanager
def _by_hand(session: IssueSession) -> Iterator[int]:
    phase_file = session.project.root.phase("harb", session.issue)
    argv = ["bash", "-c", BY_HAND, "monitor", str(phase_file)]
    argv += [os.environ["SM_TMUX_SOCKET"], session.name]
    with subprocess.Popen(argv, stderr=sys.stderr) as process:
        try:
            yield process.pid
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
