"""The memory of all that sm keeps running beside ten sessions: their monitors, and no more.

While something happens, the server of passes comes to it: one for all, until a minute is quiet.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from sm.adapters import procfs
from sm.adapters.tmux import Tmux
from sm.sessions import agent, registry
from sm.store.paths import Root
from tests.bench.measure import Bench, Figure, measure_memory_mb
from tests.company import Company, make_company
from tests.helpers import wait_for

SESSIONS = 10
BUSY, BUDGET_BUSY_MB = 100, 60.0
BUSY_S = 5.0
QUIET_S = 3.0
BY_HAND = "import time; time.sleep(600)"


def figures(bench: Bench) -> Iterator[Figure]:
    """What is shared with other processes counts in part (PSS), as there are several of a kind."""
    (sessions,) = bench.sizes((SESSIONS,), quick=(SESSIONS,))
    root = Root(bench.folder / "state")
    root.path.mkdir(mode=0o700)
    os.environ["SM_STATE_ROOT"] = str(root.path)
    company = make_company(bench.folder, root)
    with ExitStack() as ends:
        ends.callback(company.end)
        for _ in range(sessions):
            company.new(provider="mute")
        servers = [pid for pid in _at_rest(company) if _serves_passes(pid)]
        busy = measure_memory_mb(servers)
        for pid in servers:
            os.kill(pid, signal.SIGKILL)  # they would end by themselves, in a minute
        wait_for(lambda: not any(map(_serves_passes, servers)), "the servers' end")
        monitors, pipes = _at_rest(company), _pipes(company)
        found = {"monitors": measure_memory_mb(monitors), "transcripts": measure_memory_mb(pipes)}
        watchers = [ends.enter_context(_sleeper()) for _ in range(sessions)]
        time.sleep(0.5)  # until they sleep
        beside = measure_memory_mb([one.pid for one in watchers])
        for one in watchers:
            one.kill()
        for _ in range(crowd := bench.rounds(BUSY - SESSIONS, 0)):
            company.new(provider="mute")
        peak, after = _busy_mb(company)
    yield Figure(
        name=f"{sessions} sessions, all our processes (PSS)",
        unit="MB",
        samples=[sum(found.values())],
        beside="as many Pythons asleep",
        others=[beside],
    )
    yield Figure(
        name=f"    for a minute after a pass: {len(servers)} servers", unit="MB", samples=[busy]
    )
    yield Figure(
        name=f"    {SESSIONS + crowd} sessions have just had passes: server",
        unit="MB",
        samples=[after],
        budget=BUDGET_BUSY_MB,
    )
    yield Figure(name="    … at most, with the passes under way", unit="MB", samples=[peak])
    for (name, memory), pids in zip(found.items(), (monitors, pipes), strict=True):
        yield Figure(name=f"    {name}: {len(pids)} processes", unit="MB", samples=[memory])


def _busy_mb(company: Company) -> tuple[float, float]:
    """What serves the passes of all sessions that are woken at once: at most, and afterwards."""
    for session in registry.list_all(company.root):
        registry.poke(session.dir)
    peak, until = 0.0, time.monotonic() + BUSY_S
    while time.monotonic() < until:
        peak = max(peak, measure_memory_mb([pid for pid in _ours(company) if _serves_passes(pid)]))
    return peak, measure_memory_mb([pid for pid in _at_rest(company) if _serves_passes(pid)])


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-Ic", BY_HAND])


def _at_rest(company: Company) -> list[int]:
    """Our processes, once nothing has been begun or has ended for some seconds."""
    since, before = time.monotonic(), _ours(company)

    def unchanged() -> bool:
        nonlocal since, before
        if (now := _ours(company)) != before:
            since, before = time.monotonic(), now
        return time.monotonic() > since + QUIET_S

    wait_for(unchanged, "all to be at rest", 60.0)
    return sorted(before)


def _ours(company: Company) -> set[int]:
    """Every process that was told of our state root, but for the agents."""
    agents = {
        found for one in registry.list_all(company.root) if (found := agent.read_process(one.dir))
    }
    agents_pids = {process.pid for process in procfs.find_family(agents)}
    told = f"SM_STATE_ROOT={company.root.path}".encode()
    return {pid for pid in _pids() if told in _environment(pid)} - agents_pids


def _serves_passes(pid: int) -> bool:
    try:
        return b"react-server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _pids() -> Iterator[int]:
    yield from (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _pipes(company: Company) -> list[int]:
    """What tmux runs for us beside the agents: a `cat` for each transcript."""
    tmux = Tmux(os.environ["SM_TMUX_SOCKET"])
    server = int(tmux.command("display-message", "-p", "#{pid}"))
    panes = {pane.pid for pane in tmux.panes().values()}
    found = {pid for pid in _pids() if (one := procfs.find(pid)) and one.parent == server}
    return sorted(found - panes)
