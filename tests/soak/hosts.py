"""`bin/soak hosts`: issues are worked on by many hosts, which are cut off, killed and frozen."""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass

from tests.soak.figures import Figure
from tests.soak.fleet import Fleet
from tests.soak.harm import Harm
from tests.soak.hostfigures import HostOutcome
from tests.soak.people import People
from tests.soak.room import Room, new_path
from tests.soak.trial import carry_out, play, say, tell
from tests.soak.trouble import draw
from tests.soak.work import parts
from tests.soak.writers import Writers

LOOK_S, PEOPLE_S, NOTE_S = 0.1, 1.0, 1.0
QUIET_S = 180.0
LOST_AFTER = "8s"
"""Some of what happens to hosts takes longer, and some does not."""
SETTINGS: dict[str, object] = {
    "recovery": {"max": 8, "pause": "0.2s"},
    "max_sessions": 100,
}


def main() -> int:
    """Run what the arguments ask for; returns the exit code."""
    options = _options()
    room = Room(new_path(), step_s=options.step, polls=1, size="")
    fleet = Fleet(room)
    return carry_out(lambda: _run(fleet, options), room, fleet.end, options.keep)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/soak hosts", description=__doc__)
    parser.add_argument("--issues", type=int, default=50, help="how many are worked on")
    parser.add_argument("--hosts", type=int, default=5, help="by how many hosts")
    parser.add_argument("--sessions", type=int, default=3, help="agents at once on each host")
    parser.add_argument("--troubles", type=int, default=30, help="how often something goes wrong")
    parser.add_argument("--seed", type=int, default=1, help="of what goes wrong, where and when")
    parser.add_argument("--gap", type=float, default=10.0, help="seconds between, on average")
    parser.add_argument("--longest", type=float, default=25.0, help="seconds, at most, of each")
    parser.add_argument("--step", type=float, default=0.4, help="seconds an agent takes for a step")
    parser.add_argument(
        "--deadline", type=float, default=1200.0, help="seconds, after the last trouble"
    )
    parser.add_argument("--keep", default="", help="copy all of it to this new folder at the end")
    return parser.parse_args()


@dataclass
class Story:
    """Who takes part: what goes wrong, the people, and those who write to agents."""

    fleet: Fleet
    harm: Harm
    people: People
    writers: Writers


def _run(fleet: Fleet, options: argparse.Namespace) -> int:
    plan = draw(options.seed, count=options.troubles, gap_s=options.gap, longest_s=options.longest)
    whole_s = options.troubles * options.gap
    say(f"seed {options.seed}: {len(plan)} troubles, in '{fleet.room.path}'")
    settings = {"hosts": options.hosts, "sessions": options.sessions}
    fleet.build(SETTINGS, **settings, lost_after=LOST_AFTER)
    story = Story(
        fleet,
        Harm(fleet, plan, say),
        People(fleet.room, parts(options.issues, whole_s)),
        Writers(fleet.room, random.Random(options.seed)),
    )
    began = time.monotonic()
    in_time = _play(story, whole_s + options.deadline)
    is_quiet = in_time and await_quiet(fleet)
    fleet.room.stop_polling()
    took_s = time.monotonic() - began
    figures = list(HostOutcome(fleet, story.harm.struck, story.people, story.writers).figures())
    if not in_time:
        figures.append(Figure("deadline", f"{took_s:.0f} s", ("not all was merged by then",)))
    elif not is_quiet:
        figures.append(Figure("deadline", f"{took_s:.0f} s", ("not all had ended by then",)))
    return tell(fleet.room, story.people, figures, took_s)


def _play(story: Story, deadline_s: float) -> bool:
    """Let it all happen; False if it was not over by the deadline."""
    noted_at = 0.0

    def look(elapsed_s: float) -> None:
        story.harm.look(elapsed_s)
        if not story.harm.is_away:
            story.fleet.room.keep_polling()

    def meet_people(elapsed_s: float) -> bool:
        nonlocal noted_at
        if story.people.look(elapsed_s) and not story.harm.waiting:
            return True
        placed = [one.issue for one in story.fleet.list_placed() if one.handle]
        if placed and elapsed_s > noted_at + NOTE_S:
            story.writers.write(placed)
            noted_at = elapsed_s
        return False

    return play(look, meet_people, every_s=LOOK_S, people_every_s=PEOPLE_S, deadline_s=deadline_s)


def await_quiet(fleet: Fleet) -> bool:
    """What is left on hosts ends by itself, as dev-poll goes on; say whether it did."""
    deadline = time.monotonic() + QUIET_S
    while time.monotonic() < deadline:
        fleet.room.keep_polling()
        if not (fleet.list_placed() or any(one.has_sessions() for one in fleet.machines.values())):
            return True
        time.sleep(LOOK_S)
    return False


if __name__ == "__main__":
    sys.exit(main())
