"""What a forge elsewhere costs: requests of an hour, a tick over it, a webhook to its reaction."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from sm.adapters.forge.model import CheckState
from sm.issues.look.snapshot import last_snapshot
from sm.issues.poll import tick
from sm.sessions.project import Project
from sm.store.files import write_json
from sm.store.paths import ProjectDir
from tests.bench.measure import Bench, Figure
from tests.bench.reaction import quiet_stage
from tests.chance import dice
from tests.e2e.stage import Stage
from tests.e2e.test_webhooks import delivering
from tests.forges import hour
from tests.forges.sides import RemoteSide, remote_side
from tests.helpers import wait_for
from tests.hub import make_hub

LOOK_S = 0.002
CHANCE = dice(9)
PULLS = 100
BUDGET_TICK_MS = 2000
BUDGET_WEBHOOK_MS = 2500
APART_S = 5.5
"""Webhooks nearer to each other share a look."""


def figures(bench: Bench) -> Iterator[Figure]:
    """An hour of waiting for CI, a tick over many pull requests, a webhook to the agent."""
    for count in bench.sizes((1, 10, 100), quick=(1, 10)):
        yield from _hour_of_waiting(bench.folder / f"hour-{count}", count)
    for count in bench.sizes((1, 10, 100), quick=(1, 10)):
        yield _busy_hour(bench.folder / f"busy-{count}", count)
    yield from _tick(bench)
    yield _webhook(bench)


@contextmanager
def _github(folder: Path) -> Iterator[RemoteSide]:
    folder.mkdir()
    with remote_side("github", make_hub(folder), folder / "kept") as side:
        yield side


def _hour_of_waiting(folder: Path, count: int) -> Iterator[Figure]:
    """Nothing happens; each session would ask every 30 seconds by itself."""
    with _github(folder) as side:
        hour.add_waiting(side, count)
        spent = hour.spend(side, hour.look_by_clock())
    name = f"GitHub, an hour, {count} await CI"
    alone = [float(count * hour.HOUR_S // hour.POLL_S)]
    beside = "each asks every 30 s"
    yield Figure(
        name=f"{name}: requests", unit="", samples=[spent.requests], beside=beside, others=alone
    )
    yield Figure(
        name=f"{name}: points",
        unit="",
        samples=[spent.points],
        budget=300.0,
        beside=beside,
        others=alone,
    )
    yield Figure(
        name=f"{name}: answered 304", unit="%", samples=[100 * spent.unchanged / spent.requests]
    )


def _busy_hour(folder: Path, count: int) -> Figure:
    """Each check ends once within the hour: points with webhooks, and without."""
    with _github(folder) as side:
        told = _spend_while_checks_end(side, count, hour.look_for_webhooks)
    with _github(folder.with_name(f"{folder.name}-by-clock")) as side:
        by_clock = _spend_while_checks_end(side, count, lambda _: hour.look_by_clock())
    return Figure(
        name=f"GitHub, an hour, CI of {count} ends, webhooks: points",
        unit="",
        samples=[told.points],
        beside="looks every 30 s",
        others=[by_clock.points],
    )


def _spend_while_checks_end(
    side: RemoteSide, count: int, look: Callable[[list[float]], list[float]]
) -> hour.Spent:
    runs = hour.add_waiting(side, count)
    apart = hour.HOUR_S / count
    ends = [(apart * (number + 0.5), run) for number, run in enumerate(runs)]
    return hour.spend(side, look([at + 1 for at, _ in ends]), ends)


def _tick(bench: Bench) -> Iterator[Figure]:
    """One that has to look, over pull requests that all wait for CI: GitHub's answers included."""
    [pulls] = bench.sizes((PULLS,), quick=(PULLS,))
    with _github(bench.folder / "tick") as side:
        hour.add_waiting(side, pulls)
        project = _project(side, bench.folder / "state")
        walls, cpus = [], []
        for _ in range(bench.rounds(11, 4) + 1):
            wall, cpu = _measure_tick(project)
            walls.append(wall)
            cpus.append(cpu)
    name = f"tick(), GitHub, {pulls} open pull requests"
    yield Figure(name=f"{name}, wall", unit="ms", samples=walls[1:], budget=BUDGET_TICK_MS)
    yield Figure(name=f"{name}, CPU of sm and git", unit="ms", samples=cpus[1:])


def _project(side: RemoteSide, state: Path) -> Callable[[], Project]:
    """The project as a process of its own would open it: nothing remembered."""
    from sm.config.load import load

    state.mkdir(mode=0o700)
    env = os.environ | {"SM_STATE_ROOT": str(state)}
    config = load(side.hub.config, env, side.folder)
    settings = structs.replace(side.project, max_sessions=0)
    return lambda: Project(config, settings)


def _measure_tick(project: Callable[[], Project]) -> tuple[float, float]:
    """Milliseconds by the clock, and of a processor: of this thread and of its children."""
    opened = project()
    _age(opened.directory)
    began, cpu = time.perf_counter(), _cpu_s()
    said = list(tick(opened))
    assert not said, said
    return (time.perf_counter() - began) * 1000, (_cpu_s() - cpu) * 1000


def _age(directory: ProjectDir) -> None:
    """Let the forge be due to be looked at, but not to be read anew."""
    seen = last_snapshot(directory)
    if seen is not None:
        write_json(directory.snapshot, structs.replace(seen, taken_at=seen.taken_at - 60))


def _cpu_s() -> float:
    """The server of the test is in other threads of this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + used.ru_utime + used.ru_stime


def _webhook(bench: Bench) -> Figure:
    """From the delivery that CI has failed to the words before the agent; looks are 5 min apart."""
    folder = bench.folder / "webhook"
    folder.mkdir()
    stage = quiet_stage(folder)
    found = []
    with delivering(stage, "github", ci={"poll": "5m", "max_fixes": 1000}) as side:
        hook, side.hook = side.hook, None
        assert hook
        try:
            issue = side.state.add("Mend it", "", "ada")
            side.state.label(issue, ["backlog"])
            list(tick(stage.project))
            wait_for(stage.told, "the task")
            for number in range(bench.rounds(11, 4)):
                head = _push(stage, side, issue.number, f"{number}\n")
                heard = len(stage.told())
                time.sleep(APART_S + CHANCE.uniform(0, 1))
                side.finish(head, CheckState.FAILURE, "build", "line 7 is wrong\n")
                began = time.perf_counter()
                assert hook.deliver("check_run", {"check_run": {"head_sha": head}}) == 202
                wait_for(lambda heard=heard: len(stage.told()) > heard, "it", every_s=LOOK_S)  # type: ignore[misc]
                found.append((time.perf_counter() - began) * 1000)
        finally:
            stage.end()
    return Figure(
        name="webhook delivered to reaction typed",
        unit="ms",
        samples=found,
        budget=BUDGET_WEBHOOK_MS,
    )


def _push(stage: Stage, side: RemoteSide, issue: int, content: str) -> str:
    """Push, and ask for CI; the commit, once it was seen that its check is under way."""
    head = stage.push_work(issue, content=content)
    side.begin(head)
    stage.write_phase(issue, "PHASE:awaiting_ci")

    def is_seen() -> bool:
        seen = last_snapshot(stage.project.directory)
        pull = seen.pull(f"fix/{issue}") if seen else None
        return pull is not None and pull.check.state is CheckState.PENDING and pull.head == head

    wait_for(is_seen, "the look that finds the check under way")
    return head
