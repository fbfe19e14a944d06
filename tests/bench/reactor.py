"""One `sm react` with nothing to do: what every wake-up of a session costs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from sm.issues.poll import tick
from tests.bench.measure import Bench, Figure, in_turns, run, wall_ms
from tests.bench.reaction import quiet_stage

BUDGET_CPU_MS = 250
TOP = 8

IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \| +([\w.]+)")
"""A line of `-X importtime`: the microseconds that a module itself took, and its name."""


def figures(bench: Bench) -> Iterator[Figure]:
    """The whole process beside a Python that does nothing; then which imports it is made of."""
    stage = quiet_stage(bench.folder)
    issue = stage.file_issue()
    try:
        list(tick(stage.project))
        argv = ["-m", "sm", "--config", str(stage.config), "react", "harb", str(issue)]
        cpu: list[float] = []

        def react() -> float:
            spent = run([sys.executable, "-I", *argv])
            cpu.append(spent.cpu_s * 1000)
            return spent.wall_s * 1000

        nothing = wall_ms(sys.executable, "-I", "-c", "pass")
        rounds = bench.rounds(25, 8)
        whole, bare = in_turns(rounds, react, nothing)
        imports = [_imports(argv) for _ in range(bench.rounds(7, 3))]
    finally:
        stage.end()
    yield Figure(
        name="sm react, nothing to do",
        unit="ms",
        samples=whole,
        beside="python -I -c pass",
        others=bare,
    )
    yield Figure(
        name="the same, time of a processor", unit="ms", samples=cpu[-rounds:], budget=BUDGET_CPU_MS
    )
    yield from _by_package(imports)


def _imports(argv: list[str]) -> dict[str, float]:
    """Milliseconds that the modules of each package took to import, by its name."""
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", *argv],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = defaultdict(float)
    for microseconds, module in IMPORT.findall(done.stderr):
        found[module.partition(".")[0]] += int(microseconds) / 1000
    return found


def _by_package(imports: list[dict[str, float]]) -> Iterator[Figure]:
    every = [sum(found.values()) for found in imports]
    yield Figure(name="    all imports, as -X importtime has them", unit="ms", samples=every)
    names = {name for found in imports for name in found}
    samples = {name: [found.get(name, 0.0) for found in imports] for name in names}
    for name in sorted(names, key=lambda name: -median(samples[name]))[:TOP]:
        yield Figure(name=f"    import {name}", unit="ms", samples=samples[name])
