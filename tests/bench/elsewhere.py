"""What work elsewhere costs: a tick with 1,000 placements, and nothing where there are none."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sm.base import plugin
from sm.base.act_guard import before_act
from sm.base.plugin import Plugin
from sm.config.load import load
from sm.issues import placements
from sm.issues.act import attempts
from sm.issues.poll import tick
from sm.issues.runners import KnownState, Placement, Standing
from sm.issues.work import claim
from sm.sessions import fence
from sm.sessions.project import Project
from tests.bench.measure import Bench, Figure, Take, call_ms, in_turns
from tests.e2e.stage import Stage, make_stage
from tests.helpers import git
from tests.issues.farm import Farm
from tests.issues.nodes import file_and_claim, make_node

TICK_MS = 2000.0
"""As for 1,000 sessions of this machine."""
FREE_US = 10.0
"""What each act may cost a session that cannot be overtaken."""


class Steady(Farm):
    """A `Runner` on which all that was placed runs."""

    def list_free(self, project: Project, placements: Sequence[Placement]) -> list[str]:
        """Return no place."""
        return []

    def place(self, project: Project, placement: Placement) -> Placement:
        """Return it as it is."""
        return placement

    def follow(self, project: Project, placements: Sequence[Placement]) -> Mapping[str, KnownState]:
        """Say that all run."""
        now = time.time()
        return {one.session: KnownState(Standing.RUNNING, one.host, now) for one in placements}


RUNNER = Steady()
PLUGIN = Plugin(runners={"steady": f"{__name__}:RUNNER"})


def figures(bench: Bench) -> Iterator[Figure]:
    """Ticks with and without placements, then a look of the fence, and none."""
    known = plugin._registry
    plugin.use(lambda: [("steady", f"{__name__}:PLUGIN")])
    try:
        yield from _ticks(bench)
    finally:
        plugin._registry = known
    yield from _acts(bench)


def _ticks(bench: Bench) -> Iterator[Figure]:
    for count in bench.sizes((100, 1000), quick=(100,)):
        found = in_turns(
            bench.rounds(7, 3),
            *(_tick(bench.folder / name, many) for name, many in (("away", count), ("here", 0))),
        )
        yield Figure(
            name=f"tick(), {count:,} placements, forge due",
            unit="ms",
            samples=found[0],
            budget=TICK_MS,
            beside="the same without a runner",
            others=found[1],
        )
        for name in ("away", "here"):
            shutil.rmtree(bench.folder / name)


def _tick(folder: Path, count: int) -> Take:
    folder.mkdir()
    (folder / "state").mkdir(mode=0o700)
    settings: dict[str, object] = {"max_sessions": 0} | ({"runner": "steady"} if count else {})
    stage = make_stage(folder, auto=False, settings=settings)
    place = {"SM_STATE_ROOT": str(folder / "state")}
    config = load(stage.config, os.environ | place, folder)
    project = Project(config, config.projects[0])
    if count:
        _place(stage, project, count)

    def look() -> None:
        project.directory.snapshot.unlink(missing_ok=True)
        said = list(tick(project))
        assert not said, said

    return call_ms(look)


def _place(stage: Stage, project: Project, count: int) -> None:
    head = git(stage.repository.bare, "rev-parse", "main")
    refs = "".join(f"{head} {claim.name_ref(number)}\n" for number in range(1, count + 1))
    packed = stage.repository.bare / "packed-refs"
    packed.write_text(f"# pack-refs with: peeled fully-peeled sorted\n{_sort(refs)}")
    for number in range(1, count + 1):
        placement = Placement(
            "harb", number, f"dev-harb-{number}", "steady", "one", 1, head, "h", 1.0
        )
        placements.keep(project.directory, placement)


def _sort(refs: str) -> str:
    lines = sorted(refs.splitlines(), key=lambda line: line.split(" ")[1])
    return "".join(f"{line}\n" for line in lines)


def _acts(bench: Bench) -> Iterator[Figure]:
    folder = bench.folder / "acts"
    folder.mkdir()
    stage = make_stage(folder, auto=False)
    node = make_node(stage, "one")
    session = node.put_on_record(file_and_claim(stage)[1])
    own = session.change(attempt=0, claim="")

    def free() -> float:
        began = time.perf_counter()
        with attempts.fence_in(own), fence.guard(own):
            for _ in range(100):
                before_act()
        return (time.perf_counter() - began) * 1e6 / 100

    def fenced() -> float:
        began = time.perf_counter()
        with fence.guard(session):
            before_act()
        return (time.perf_counter() - began) * 1e6

    [samples] = in_turns(bench.rounds(25, 10), free)
    yield Figure(
        name="an act of a session of this machine", unit="µs", samples=samples, budget=FREE_US
    )
    [samples] = in_turns(bench.rounds(25, 10), fenced)
    yield Figure(
        name="an act of one that was placed here, with its look", unit="µs", samples=samples
    )
