"""`bin/soak page [MINUTES] [--events PER_SECOND]`: whether an open page grows, and its server.

It has events happen in twenty sessions, and takes what the server and the browser hold. What is
more in the last third than in the second is what a day would add so many times over: with the
events of a busy day, one in ten seconds, or as many as there were.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

from playwright.sync_api import CDPSession

from sm.store import events
from tests.bench.crowd import make_crowd
from tests.bench.live_page import open_page
from tests.bench.run import sealed
from tests.serving import STARTED, serving

SESSIONS = 20
DAY_EVENTS = 8640
SAMPLES = 60
MB = 1024 * 1024


class Held(NamedTuple):
    """What is held at a moment: megabytes of the server, its open files, and the page's share."""

    server_mb: float
    server_files: float
    heap_mb: float
    nodes: float
    listeners: float


MOST_A_DAY = Held(32, 8, 16, 2000, 200)
"""What a day may add."""


def take(pid: int, browser: CDPSession) -> Held:
    """Take it, after the browser has thrown away what it can."""
    browser.send("HeapProfiler.collectGarbage")
    metrics = {
        one["name"]: one["value"] for one in browser.send("Performance.getMetrics")["metrics"]
    }
    status = Path(f"/proc/{pid}/status").read_text()
    [kilobytes] = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
    return Held(
        int(kilobytes) / 1024,
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        metrics["JSHeapUsedSize"] / MB,
        metrics["Nodes"],
        metrics["JSEventListeners"],
    )


def extrapolate(samples: list[Held], happened: int) -> Held:
    """What the events of a day would add, by what those between the two thirds have added."""
    third = max(1, len(samples) // 3)
    before, after = samples[third : 2 * third] or samples[:1], samples[-third:]
    share = DAY_EVENTS / max(1.0, happened * third / len(samples))
    grown = (
        (median(late) - median(early)) * share
        for early, late in zip(zip(*before, strict=True), zip(*after, strict=True), strict=True)
    )
    return Held(*grown)


def say_held(minutes: float, held: Held) -> None:
    """Show how it goes to who waits for the end."""
    figures = (f"{name} {figure:.1f}" for name, figure in zip(held._fields, held, strict=True))
    print(f"{minutes:5.1f} min", *figures, sep="  ", file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    """Soak; return 0 if a day adds little enough."""
    parser = argparse.ArgumentParser("bin/soak page")
    parser.add_argument("minutes", nargs="?", type=float, default=60.0)
    parser.add_argument("--events", type=float, default=1.0, help="in a second")
    options = parser.parse_args(words)
    samples, happened = list[Held](), 0
    with sealed() as folder:
        crowd = make_crowd(folder / "crowd", SESSIONS, awaiting=True)
        with crowd.held, ExitStack() as open_:
            env = os.environ | {"SM_CONFIG": str(crowd.stage.config), "SM_PYTHON": sys.executable}
            server = open_.enter_context(serving(folder, base=env, clean=False, program=STARTED))
            page = open_.enter_context(open_page(server.url))
            browser = page.context.new_cdp_session(page)
            browser.send("Performance.enable")
            begun, end = time.monotonic(), time.monotonic() + options.minutes * 60
            while (now := time.monotonic()) < end:
                if now >= begun + len(samples) * options.minutes * 60 / SAMPLES:
                    samples.append(take(server.process.pid, browser))
                    say_held((now - begun) / 60, samples[-1])
                name = f"dev-{crowd.project.name}-{happened % SESSIONS + 1}"
                crowd.project.record(events.Monitor(session=name, state=f"seen {happened}"))
                happened += 1
                page.wait_for_timeout(1000 / options.events)
            samples.append(take(server.process.pid, browser))
    grown = extrapolate(samples, happened)
    print(f"{happened:,} events in {options.minutes:g} minutes; a day has {DAY_EVENTS:,}")
    for name, first, last, more, most in zip(
        Held._fields, samples[0], samples[-1], grown, MOST_A_DAY, strict=True
    ):
        print(f"{name:13} {first:10.1f} → {last:10.1f}   a day adds {more:8.1f}, may add {most}")
    return int(any(more > most for more, most in zip(grown, MOST_A_DAY, strict=True)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
