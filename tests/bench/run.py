"""Runs the benchmarks: a table for people, JSON for machines.

Usage: bin/bench [--quick] [--output FILE] [NAME]…

No figure is too bad to pass; but one that cannot be taken is named, and the exit code is 1. The
others are taken all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this file's own folder is no place to import from

import pytest  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from tests import chromium, sshd  # noqa: E402
from tests.bench.measure import Bench, Figure  # noqa: E402
from tests.conftest import sealed_environment  # noqa: E402
from tests.real import client  # noqa: E402, F401 - reads what is sealed off below

BENCHMARKS = {
    "help": "startup",
    "tick": "tick",
    "monitor": "idle_monitor",
    "reaction": "reaction",
    "forge": "forge",
    "react": "reactor",
    "hooks": "hooks",
    "receipt": "receipt",
    "delivery": "messages",
    "throughput": "throughput",
    "issues": "issues",
    "elsewhere": "elsewhere",
    "rotation": "rotation",
    "notify": "notify",
    "memory": "memory",
    "bridge": "bridge",
    "mcp": "mcpserver",
    "hosts": "hosts",
    "fifty": "fifty",
    "looks": "looks",
    "cost": "cost",
    "top": "top",
    "page": "page",
    "numbers": "numbers",
    "live": "live_page",
}
"""The names on the command line, and their modules here."""

OF_THE_CLIENT = ("receipt", "delivery", "throughput", "rotation")
"""Without the real client there is nothing to measure."""
NEEDED = {"hosts": (sshd.PROGRAM, sshd.MISSING), "live": (chromium.PROGRAM, chromium.MISSING)}
"""The programs without which some cannot be taken, and the words for that."""


def main(arguments: Sequence[str]) -> int:
    """Run what is named, or all; returns the exit code, 1 where something could not be measured."""
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    report = {"at": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "machine": _machine()}
    found: dict[str, list[Figure]] = {}
    failed: dict[str, str] = {}
    for name in options.names or BENCHMARKS:
        if why := find_missing(name):
            console.print(f"[dim]{name} is left out: {why}", highlight=False)
            continue
        console.print(f"[dim]{name} …", highlight=False)
        found[name] = []
        try:
            for figure in take(name, quick=options.quick):
                found[name].append(figure)
        except (Exception, pytest.fail.Exception) as error:  # a client that cannot be installed
            failed[name] = _reason(error)
    console.print(_table(found))
    entries = {name: [_entry(figure) for figure in figures] for name, figures in found.items()}
    report |= {"figures": entries, "failed": failed}
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    console.print(f"written to {options.output}", highlight=False)
    for name, reason in failed.items():
        print(f"bench: {name} failed: {reason}", file=sys.stderr)
    return int(bool(failed))


def find_missing(name: str) -> str:
    """Why a benchmark cannot be taken on this machine, '' if it can."""
    program, missing = NEEDED.get(name, ("-", ""))
    return "" if program else missing


def take(name: str, *, quick: bool = False, once: bool = False) -> Iterator[Figure]:
    """The figures of a benchmark, one by one, in a folder that is gone afterwards."""
    with sealed() as folder:
        module = import_module(f"tests.bench.{BENCHMARKS[name]}")
        yield from module.figures(Bench(folder, quick, once))


def _reason(error: BaseException) -> str:
    """What went wrong, and where in our own code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(ROOT / "tests")]
    said = str(error).strip() or type(error).__name__
    return f"{said} ({Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno})"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bin/bench", description="Runs the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller numbers")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        default=ROOT / "bench.json",
        help="where the JSON goes (default: bench.json in the clone)",
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark '{name}': there is {', '.join(BENCHMARKS)}")
    return options


def _machine() -> dict[str, object]:
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
        "commit": commit.stdout.strip(),
    }


@contextmanager
def sealed() -> Iterator[Path]:
    """A folder with a HOME, a state root and a tmux server of its own, all gone afterwards."""
    before = dict(os.environ)
    folder = Path(tempfile.mkdtemp(prefix="sm-bench-"))
    socket = f"sm-bench-{secrets.token_hex(4)}"
    state = folder / "state-root"
    state.mkdir(mode=0o700)
    place = {"SM_STATE_ROOT": str(state), "SM_TMUX_SOCKET": socket}
    sealed = sealed_environment(folder) | place
    try:
        os.environ.clear()
        os.environ.update(sealed)
        yield folder
    finally:
        subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True, check=False)
        Path(f"/tmp/tmux-{os.geteuid()}/{socket}").unlink(missing_ok=True)
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def _table(found: dict[str, list[Figure]]) -> Table:
    table = Table(title="Medians; the alternative was measured in the same minutes, in turns")
    for title in ("figure", "median", "min – max", "beside", "ratio", "budget", "within"):
        table.add_column(title, justify="left" if title in ("figure", "beside") else "right")
    for figures in found.values():
        for figure in figures:
            table.add_row(*_row(figure))
        table.add_section()
    return table


def _row(figure: Figure) -> tuple[str, ...]:
    low, high = min(figure.samples), max(figure.samples)
    verdict = {None: "", True: "[green]yes", False: "[red]NO"}[figure.within]
    return (
        figure.name,
        f"{_shown(figure.median)} {figure.unit}",
        f"{_shown(low)} – {_shown(high)}",
        f"{figure.beside}: {_shown(figure.other)}" if figure.others else figure.beside,
        f"{figure.ratio:.2f}" if figure.ratio is not None else "",
        f"{figure.budget:g} {figure.unit}" if figure.budget is not None else "",
        verdict,
    )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _entry(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "unit": figure.unit,
        "median": figure.median,
        "min": min(figure.samples),
        "max": max(figure.samples),
        "budget": figure.budget,
        "within": figure.within,
        "beside": figure.beside,
        "beside_median": figure.other if figure.others else None,
        "ratio": figure.ratio,
        "samples": figure.samples,
        "beside_samples": figure.others,
    }


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    sys.exit(main(sys.argv[1:]))
