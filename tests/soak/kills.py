"""`bin/soak kills`: issues are worked on while whatever works on them is killed."""

from __future__ import annotations

import argparse
import sys
import time

from tests.soak.faults import Kind, draw, duration_s
from tests.soak.figures import Figure, Outcome
from tests.soak.hunt import Hunt
from tests.soak.people import People
from tests.soak.room import Room, new_path
from tests.soak.trial import carry_out, play, say, tell
from tests.soak.work import parts

LOOK_S = 0.03
PEOPLE_S = 0.5
QUIET_S = 60.0


def main() -> int:
    """Run what the arguments ask for; returns the exit code."""
    options = _options()
    room = Room(new_path(), step_s=options.step, polls=options.polls)
    return carry_out(lambda: _run(room, options), room, room.kill_all, options.keep)


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
    say(f"seed {options.seed}: {len(plan)} faults within {whole_s:g} s, in '{room.path}'")
    room.enter()
    room.build(
        {"max_sessions": options.sessions, "recovery": {"max": options.restarts, "pause": "0.2s"}}
    )
    hunt, people = Hunt(room, plan, say), People(room, parts(options.issues, whole_s))

    def look(elapsed_s: float) -> None:
        room.keep_polling()
        hunt.look(elapsed_s)

    began = time.monotonic()
    in_time = play(
        look,
        people.look,
        every_s=LOOK_S,
        people_every_s=PEOPLE_S,
        deadline_s=whole_s + options.deadline,
    )
    took_s = time.monotonic() - began
    if in_time:
        room.stop_polling()
        _await_quiet(room)
    figures = [*_faults(hunt, options), *Outcome(room, hunt, people).figures()]
    if not in_time:
        figures.append(Figure("deadline", f"{took_s:.0f} s", ("not all was merged by then",)))
    return tell(room, people, figures, took_s)


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


if __name__ == "__main__":
    sys.exit(main())
