"""`bin/soak people`: a person beside a real client, while messages come; all faults are counted."""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from tests.real.client import clients
from tests.soak.beside import FAULTS, Fault, new_folder, play

AT_ONCE = 25
"""Trials with one client, if none goes wrong."""
Played = tuple[list[Fault], Counter[str]]


def main() -> int:
    """Run what the arguments ask for; returns the exit code."""
    options = _options()
    seeds = list(range(options.seed, options.seed + options.trials))
    program = clients().claude
    tasks = [(program, seeds[at : at + AT_ONCE]) for at in range(0, len(seeds), AT_ONCE)]
    print(f"{len(seeds)} trials from seed {options.seed}", flush=True)
    began, faults, met, done = time.monotonic(), list[Fault](), Counter[str](), 0
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for (found, steps), (_, played) in zip(pool.imap(_play, tasks), tasks, strict=True):
            faults, met, done = faults + found, met + steps, done + len(played)
            for fault in found:
                print(f"seed {fault.seed}: {fault.kind}: {fault.detail}", flush=True)
            print(f"{done} of {len(seeds)}", flush=True)
    return _tell(faults, met, len(seeds), time.monotonic() - began)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/soak people", description=__doc__)
    parser.add_argument("trials", type=int, nargs="?", default=5000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the first; N and 1 replay one")
    parser.add_argument("--jobs", type=int, default=2, help="clients at once")
    return parser.parse_args()


def _play(task: tuple[Path, list[int]]) -> Played:
    program, seeds = task
    folder = new_folder() / str(seeds[0])
    try:
        return play(program, folder, seeds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tell(faults: list[Fault], met: Counter[str], trials: int, took_s: float) -> int:
    print(f"\n{trials} trials in {took_s:.0f} s: {met.total()} steps")
    print(", ".join(f"{step} {count}" for step, count in met.most_common()))
    counts = Counter(fault.kind for fault in faults)
    for kind in FAULTS:
        print(f"{'!!' if counts[kind] else '  '} {kind:28} {counts[kind]}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
