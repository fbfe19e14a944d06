"""One `sm react` with nothing to do: what every wake-up of a session costs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from sm.history import Receipt, Verb
from sm.session import plan
from tests.bench.crowd import make_crowd
from tests.bench.measure import Bench, Figure, in_turns, run

BUDGET_CPU_MS = 250
TOP = 8

IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \| +([\w.]+)")
"""A line of `-X importtime`: the microseconds that a module itself took, and its name."""


def figures(bench: Bench) -> Iterator[Figure]:
    """The whole process beside a Python that does nothing; then which imports it is made of."""
    crowd = make_crowd(bench.folder / "crowd", 1, awaiting=False)
    with crowd.held:
        (session,) = crowd.ctx.sessions()
        # Begun now, so that there is no sign of life to miss.
        plan.add_receipt(session.dir, Receipt(time.time(), "start", "start", verb=Verb.START))
        argv = ["-m", "sm", "--config", str(crowd.stage.config), "react", "harb", "1"]
        cpu: list[float] = []

        def react() -> float:
            spent = run([sys.executable, "-I", *argv])
            cpu.append(spent.cpu_s * 1000)
            return spent.wall_s * 1000

        def nothing() -> float:
            return run([sys.executable, "-I", "-c", "pass"]).wall_s * 1000

        whole, bare = in_turns(bench.rounds(25, 8), react, nothing)
        imports = [_imports(argv) for _ in range(bench.rounds(7, 3))]
    yield Figure(
        name="sm react, nothing to do",
        unit="ms",
        samples=whole,
        beside="python -I -c pass",
        others=bare,
    )
    yield Figure(
        name="the same, time of a processor", unit="ms", samples=cpu[1:], budget=BUDGET_CPU_MS
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
