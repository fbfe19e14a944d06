"""A tick of dev-poll with many sessions on record: linear, and 1,000 idle ones within 2 s."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from statistics import median

from sm.issues.poll import tick
from tests.bench.crowd import Crowd, make_crowd
from tests.bench.measure import Bench, Figure, Take, call_ms, in_turns, run

BUDGET_MS = {("idle", 1000): 2000.0}

BY_HAND = """
for phase_file in "$1"/dev-session-*.phase; do
  session=${phase_file#"$1"/dev-session-} session=dev-${session%.phase}
  tmux -L "$2" has-session -t "$session" 2>/dev/null
  phase=$(head -1 "$phase_file" 2>/dev/null | tr -d '[:space:]')
done
true
"""
"""What the protocol's document has a poll do for each session; it asks no forge at all."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Each number of sessions, idle and awaiting CI: the whole process, and the tick alone."""
    for state in ("idle", "awaiting CI"):
        alone: dict[int, list[float]] = {}
        for count in bench.sizes((1, 10, 100, 1000), quick=(1, 100)):
            crowd = make_crowd(bench.folder / "crowd", count, awaiting=state != "idle")
            with crowd.held:
                rounds = bench.rounds(7 if count < 1000 else 3, 3)
                found = in_turns(rounds, _by_hand(crowd), _process(crowd), *_ticks(crowd))
            shutil.rmtree(bench.folder / "crowd")
            alone[count] = found[2]
            yield from _figures(f"{count:,} {state}", BUDGET_MS.get((state, count)), found)
        if len(alone) > 1:  # the suite takes the smallest size alone
            yield _growth(state, alone)


def _figures(crowd: str, budget: float | None, found: list[list[float]]) -> Iterator[Figure]:
    by_hand, process, due, fresh = found
    for name, samples in (
        (f"sm poll, {crowd}", process),
        (f"tick(), {crowd}, forge due", due),
        (f"tick(), {crowd}, forge just seen", fresh),
    ):
        yield Figure(
            name=name,
            unit="ms",
            samples=samples,
            budget=budget,
            beside="has-session, head, tr for each",
            others=by_hand,
        )


def _by_hand(crowd: Crowd) -> Take:
    socket = os.environ["SM_TMUX_SOCKET"]
    argv = ["bash", "-c", BY_HAND, "poll", str(crowd.project.root.path), socket]
    return lambda: run(argv).wall_s * 1000


def _process(crowd: Crowd) -> Take:
    argv = [sys.executable, "-Im", "sm", "--config", str(crowd.stage.config), "poll"]
    return _with_forge_due(crowd, lambda: run(argv).wall_s * 1000)


def _ticks(crowd: Crowd) -> tuple[Take, Take]:
    """One that has to look at the forge, one that need not."""

    def look() -> None:
        said = list(tick(crowd.project))
        assert not said, said

    return _with_forge_due(crowd, call_ms(look)), call_ms(look)


def _with_forge_due(crowd: Crowd, take: Callable[[], float]) -> Take:
    def prepared() -> float:
        crowd.age_snapshot()
        return take()

    return prepared


def _growth(state: str, alone: dict[int, list[float]]) -> Figure:
    """What one more session costs among the most, and among fewer: 1 is linear."""
    *_, few, many = alone

    def slope(count: int) -> float:
        return (median(alone[count]) - median(alone[1])) / max(count - 1, 1)

    return Figure(
        name=f"tick(), one more {state} session among {many:,}",
        unit="ms",
        samples=[slope(many)],
        beside=f"among {few:,}",
        others=[slope(few)],
    )
