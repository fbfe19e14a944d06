"""From a phase that the agent writes to the reaction that is typed into its composer."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sm.issues.poll import tick
from sm.sessions import registry
from tests.bench.measure import Bench, Figure
from tests.chance import dice
from tests.e2e.stage import PUPPET, Stage, make_stage
from tests.helpers import wait_for
from tests.shell import stand_in

TIMED = Path(__file__).with_name("timed_reactor.py")
LOOK_S = 0.002
CHANCE = dice(8)
"""How long after a reaction the next phase is written: at any time between two looks."""

BUDGET_MS = 1500
BUDGET_POKED_MS = 300

BY_HAND = """
last=
while sleep 1; do
  phase=$(head -1 "$1" 2>/dev/null | tr -d '[:space:]')
  [[ $phase != "$last" ]] || continue
  last=$phase
  tmux -L "$2" set-buffer "CI passed" \\; paste-buffer -p -t hand \\; send-keys -t hand Enter
done
"""
"""What the protocol's document suggests, as often as ours looks; it finds out nothing at all."""


@dataclass(frozen=True)
class Reaction:
    """One measurement: milliseconds from the write to the agent, all and in parts."""

    total: float
    parts: dict[str, float]


def figures(bench: Bench) -> Iterator[Figure]:
    """At moments tied to no look of the monitor; in turns with its FIFO poked, and by hand."""
    stage, log = quiet_stage(bench.folder), bench.folder / "reactor.jsonl"
    issue = stage.file_issue()
    with patch.object(sys, "executable", str(_interpreter(bench.folder, log))):
        list(tick(stage.project))  # hands its own interpreter to the monitor
    stage.push_work(issue)
    waited, poked, by_hand = [], [], []
    try:
        _take(stage, log, issue)  # opens the pull request
        session = stage.session(issue)
        with _hand(bench.folder) as hand:
            for _ in range(bench.rounds(21, 8)):
                waited.append(_take(stage, log, issue))
                by_hand.append(hand())
                poked.append(_take(stage, log, issue, lambda: registry.poke(session.dir)))
    finally:
        stage.end()
    yield from _figures("phase written to reaction typed", waited, BUDGET_MS, by_hand)
    yield from _figures("… poked as by a hook", poked, BUDGET_POKED_MS, by_hand)


def _figures(
    name: str, found: list[Reaction], budget: float, by_hand: list[float]
) -> Iterator[Figure]:
    yield Figure(
        name=name,
        unit="ms",
        samples=[reaction.total for reaction in found],
        budget=budget,
        beside="sleep 1, head, tr, paste",
        others=by_hand,
    )
    for part in found[0].parts:
        samples = [reaction.parts[part] for reaction in found]
        yield Figure(name=f"    {part}", unit="ms", samples=samples)


def quiet_stage(folder: Path) -> Stage:
    """An installation without CI, whose agents do nothing by themselves."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    settings: dict[str, object] = {"state_root": str(state), "ci": {"command": "", "poll": "5m"}}
    return make_stage(folder, auto=False, settings=settings)


def _interpreter(folder: Path, log: Path) -> Path:
    """What the monitors take for Python: `-Im sm react-server …` becomes the timed one."""
    return stand_in(
        folder / "python",
        f'[[ $3 == react-server ]] || exec {sys.executable} "$@"\n'
        f'exec {sys.executable} -I {TIMED} {log} "${{@:3}}"',
    )


def _take(stage: Stage, log: Path, issue: int, then: Callable[[], None] = lambda: None) -> Reaction:
    """Write the phase some time after the last reaction has come to rest, and await its answer."""
    time.sleep(CHANCE.uniform(0.5, 1.5))
    heard, reactors = len(stage.told()), _count(log)
    written = time.time()
    stage.write_phase(issue, "PHASE:awaiting_ci")
    then()
    wait_for(lambda: len(stage.told()) > heard, "the reaction", every_s=LOOK_S)
    got = time.time()
    acted = wait_for(lambda: _acted(log, reactors), "the reactor's end")
    return Reaction((got - written) * 1000, _parts(acted[0], written, got))


def _acted(log: Path, before: int) -> list[dict[str, Any]]:
    """What the reactors after the first `before` noted; without those that had nothing to do."""
    lines = log.read_text().splitlines() if log.exists() else []
    entries = [json.loads(line) for line in lines[before:]]
    return [entry for entry in entries if "perform" in entry["moments"]]


def _count(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def _parts(entry: dict[str, Any], written: float, got: float) -> dict[str, float]:
    """What the time went into: the parts follow each other and add up to the whole."""
    moments = entry["moments"]
    marks = {
        "wait for the monitor's look": entry["called"],
        "begin the pass": entry["began"],
        "configuration, forge": moments["observe"][0][0],
        "observe": moments["observe"][0][1],
        "decide, compose, save": moments["perform"][0][0],
        "type": got,
    }
    times = [written, *marks.values()]
    return {
        name: (end - begin) * 1000
        for name, begin, end in zip(marks, times, times[1:], strict=False)
    }


@contextmanager
def _hand(folder: Path) -> Iterator[Callable[[], float]]:
    """A loop by hand beside an agent of its own; yields what takes one measurement of it."""
    phase_file, log = folder / "hand.phase", folder / "hand.jsonl"
    phase_file.touch()
    socket = os.environ["SM_TMUX_SOCKET"]
    own = {"PUPPET_LOG": str(log), "ISSUE": "0", "SESSION_NAME": "hand"}
    env = [argument for name, value in own.items() for argument in ("-e", f"{name}={value}")]
    argv = ["tmux", "-L", socket, "new-session", "-d", "-s", "hand", *env]
    subprocess.run([*argv, shlex.join([sys.executable, str(PUPPET)])], check=True)
    phases = cycle(("PHASE:awaiting_ci", "PHASE:awaiting_review"))

    def take() -> float:
        time.sleep(CHANCE.uniform(0.5, 1.5))
        heard, written = _count(log), time.time()
        phase_file.write_text(next(phases) + "\n")
        wait_for(lambda: _count(log) > heard, "the reaction by hand", every_s=LOOK_S)
        return (time.time() - written) * 1000

    with subprocess.Popen(["bash", "-c", BY_HAND, "monitor", str(phase_file), socket]) as loop:
        try:
            yield take
        finally:
            loop.kill()
