"""`sm --help`: what every command costs before it does anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tests.bench.measure import Bench, Figure, in_turns, wall_ms
from tests.shell import BIN

BUDGET_MS = 80


def figures(bench: Bench) -> Iterator[Figure]:
    """The help through bin/sm and straight from Python, beside a Python that does nothing."""
    python = sys.executable
    nothing, script, module = in_turns(
        bench.rounds(40, 10),
        wall_ms(python, "-I", "-c", "pass"),
        wall_ms(str(BIN / "sm"), "--help"),
        wall_ms(python, "-Im", "sm", "--help"),
    )
    for name, samples in (("bin/sm --help", script), ("python -Im sm --help", module)):
        yield Figure(
            name=name,
            unit="ms",
            samples=samples,
            budget=BUDGET_MS,
            beside="python -I -c pass",
            others=nothing,
        )
