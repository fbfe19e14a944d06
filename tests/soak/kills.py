"""`bin/soak kills`: issues are worked on while whatever works on them is killed."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

from tests.soak.faults import Kind, draw, duration_s
from tests.soak.figures import Figure, Outcome
from tests.soak.hunt import Hunt
from tests.soak.people import People
from tests.soak.room import Room, new_path
from tests.soak.work import NAME, parts

LOOK_S = 0.03
PEOPLE_S = 0.5
QUIET_S = 60.0
FAILED, INTERRUPTED = 1, 130


def main() -> int:
    """Run what the arguments ask for; returns the exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    options = _options()
    room = Room(new_path(), step_s=options.step, polls=options.polls)
    try:
        return _run(room, options)
    except KeyboardInterrupt:
        print("soak: interrupted, all is stopped", file=sys.stderr)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        room.kill_all()
        if options.keep:
            shutil.copytree(room.path, options.keep, symlinks=True, ignore=_specials)
        room.remove()


def _specials(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name in ("wake", "soak", "ballast")]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/soak kills", description=__doc__)
    parser.add_argument("--issues", type=int, default=10, help="how many are worked on")
    parser.add_argument("--kills", type=int, default=80, help="SIGKILLs of single processes")
    parser.add_argument("--reboots", type=int, default=3, help="all killed, and the state removed")
    parser.add_argument("--disks", type=int, default=1, help="full disks, ten seconds each")
    parser.add_argument("--polls", type=int, default=2, help="dev-polls at once")
    parser.add_argument("--sessions", type=int, default=4, help="agents at once")
    parser.add_argument(
        "--restarts", type=int, default=8, help="agents that may die in a row: recovery.max"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the plan of victims and times")
    parser.add_argument("--gap", type=float, default=2.0, help="seconds between kills, on average")
    parser.add_argument("--step", type=float, default=0.4, help="seconds an agent takes for a step")
    parser.add_argument(
        "--deadline", type=float, default=900.0, help="seconds, after the last fault"
    )
    parser.add_argument("--keep", default="", help="copy all of it to this new folder at the end")
    return parser.parse_args()


def _run(room: Room, options: argparse.Namespace) -> int:
    plan = draw(
        options.seed,
        kills=options.kills,
        reboots=options.reboots,
        disks=options.disks,
        gap_s=options.gap,
    )
    whole_s = duration_s(options.kills, options.gap)
    print(
        f"seed {options.seed}: {len(plan)} faults within {whole_s:g} s, in '{room.path}'",
        flush=True,
    )
    room.enter()
    room.build(
        {"max_sessions": options.sessions, "recovery": {"max": options.restarts, "pause": "0.2s"}}
    )
    hunt, people = Hunt(room, plan, _say), People(room, parts(options.issues, whole_s))
    began = time.monotonic()
    in_time = _play(room, hunt, people, whole_s + options.deadline)
    took_s = time.monotonic() - began
    if in_time:
        room.stop_polling()
        _await_quiet(room)
    figures = [*_faults(hunt, options), *Outcome(room, hunt, people).figures()]
    if not in_time:
        figures.append(Figure("deadline", f"{took_s:.0f} s", ("not all was merged by then",)))
    return _tell(room, people, figures, took_s)


def _play(room: Room, hunt: Hunt, people: People, deadline_s: float) -> bool:
    """Let it all happen; False where it was not over by the deadline."""
    began, over, stop = time.monotonic(), threading.Event(), threading.Event()

    def be_people() -> None:
        while not stop.wait(PEOPLE_S):
            if people.look(time.monotonic() - began):
                return over.set()
        return None

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(be_people)
        try:
            while not (over.is_set() or busy.done()):
                elapsed_s = time.monotonic() - began
                if elapsed_s > deadline_s:
                    return False
                room.keep_polling()
                hunt.look(elapsed_s)
                time.sleep(LOOK_S)
        finally:
            stop.set()
        busy.result()
    return True


def _await_quiet(room: Room) -> None:
    """Monitors end by themselves once their session is gone; the tmux server does, too."""
    deadline = time.monotonic() + QUIET_S
    while room.processes() and time.monotonic() < deadline:
        time.sleep(PEOPLE_S)


def _faults(hunt: Hunt, options: argparse.Namespace) -> list[Figure]:
    kills = sum(
        hunt.struck[kind] for kind in hunt.struck if kind not in (Kind.REBOOT, Kind.FULL_DISK)
    )
    each = ", ".join(f"{kind} {n}" for kind, n in sorted(hunt.struck.items()))
    left_out = ", ".join(hunt.left_out)
    found = [
        Figure("SIGKILLs", f"{kills} of {options.kills}"),
        Figure("faults", each),
        Figure("left out, mounting is not permitted", left_out) if left_out else None,
        Figure("found no victim", str(len(hunt.waiting))) if hunt.waiting else None,
    ]
    return [figure for figure in found if figure]


def _tell(room: Room, people: People, figures: list[Figure], took_s: float) -> int:
    """Print the table, and the stories of what went wrong; returns the exit code."""
    print(f"\n{took_s:.0f} s, {len(people.problems)} commands of people that failed")
    for figure in figures:
        print(f"{'!!' if figure.wrong else '  '} {figure.name:42} {figure.value}")
        for line in figure.wrong[:20]:
            print(f"       {line}")
    if not any(figure.wrong for figure in figures):
        return 0
    for issue in room.project.forge.issues.find()[0]:
        if issue.state == "open":
            print(room.run("sm", "trace", NAME, str(issue.number)).stdout)
    return FAILED


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
