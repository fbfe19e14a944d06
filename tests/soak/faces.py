"""`bin/soak faces`: random worlds, in which each face has to say the same, and what is so."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from sm.base import plugin
from sm.plugins import OURS
from sm.store.paths import Root
from tests.conftest import end_tmux, sealed_environment
from tests.faces.living import living
from tests.faces.walk import DifferentError, walk

STEPS = 60
"""In one world."""


def main() -> int:
    """Run what the arguments ask for; return the exit code."""
    options = _read_options()
    began, steps, worlds, wrong = time.monotonic(), 0, 0, list[str]()
    until = began + options.minutes * 60 if options.minutes else float("inf")
    print(f"{options.worlds} worlds of {options.steps} steps, from seed {options.seed}", flush=True)
    # A world sets the clocks, the environment and much else of its process.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for seed in range(options.seed, options.seed + options.worlds):
            if time.monotonic() >= until:
                break
            made, said = pool.apply(_walk, (seed, options.steps, until - time.monotonic()))
            worlds, steps = worlds + 1, steps + made
            if said:
                wrong.append(said)
                print(said, flush=True)
            print(f"seed {seed}: {made} steps; {steps} in all, {len(wrong)} wrong", flush=True)
    took_s = time.monotonic() - began
    print(f"{worlds} worlds, {steps} steps, {took_s / 60:.0f} minutes: {len(wrong)} wrong")
    return 1 if wrong else 0


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/soak faces", description=__doc__)
    parser.add_argument("worlds", type=int, nargs="?", default=500, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the first; 1 and SEED replay one")
    parser.add_argument("--steps", type=int, default=STEPS, help="in each world")
    parser.add_argument("--minutes", type=float, default=0.0, help="no longer than so many")
    return parser.parse_args()


def _walk(seed: int, steps: int, left_s: float) -> tuple[int, str]:
    """Walk through one world; return the steps that were made, and what went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="sm-faces-"))
    socket, end_at = f"sm-faces-{secrets.token_hex(4)}", time.monotonic() + left_s
    environment = sealed_environment(folder)
    os.environ.clear()
    os.environ.update(environment)
    (folder / "state").mkdir(mode=0o700)
    os.environ |= {"SM_STATE_ROOT": str(folder / "state"), "SM_TMUX_SOCKET": socket}
    plugin.use(OURS.items)
    made = 0

    def goes_on() -> bool:
        nonlocal made
        made += 1
        return time.monotonic() < end_at

    try:
        with living(folder, Root(folder / "state"), seed) as world:
            return walk(world, steps, goes_on), ""
    except DifferentError as error:
        return made, str(error)
    except Exception:  # whatever it is, it is told with its seed, and the next world begins
        return made, f"seed {seed}, step {made}:\n{traceback.format_exc()}"
    finally:
        end_tmux(socket)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
