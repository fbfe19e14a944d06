"""`bin/soak cut`: hosts in network name spaces of their own, cut off in the midst of an issue."""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sm.adapters.forge.model import CheckState, Issue, PullRequest, PullState, ReviewState
from sm.base.clock import Deadline
from sm.issues.runners import Placement
from tests.cable import Cable, all_strung
from tests.soak import twice
from tests.soak.books import BRANCH, Books, list_late, read_updates
from tests.soak.figures import Figure, read_text
from tests.soak.fleet import Fleet
from tests.soak.hostfigures import HostOutcome
from tests.soak.hosts import await_quiet
from tests.soak.outage import Kind, Moment, Outage, draw, shake, strike
from tests.soak.people import People
from tests.soak.room import Room, new_path
from tests.soak.trial import carry_out, play, say, tell
from tests.soak.twice import Told
from tests.soak.work import Need, Part
from tests.soak.writers import NOTE, Writers

LOOK_S, PEOPLE_S = 0.1, 0.3
NOTES, NOTE_S = 2, 2.0
"""Messages to the agent of a round, and the time between them."""
ROUND_S, TAKEN_S = 240.0, 60.0
LOST_AFTER = "3s"
SETTINGS: dict[str, object] = {
    "recovery": {"max": 8, "pause": "0.2s"},
    "max_sessions": 100,
}
UNUSABLE, LEFT_S = 2, 30.0
ANSWERING = re.compile(r"sshd|sm host serve")


def main() -> int:
    """Run what the arguments ask for; returns the exit code."""
    options = _options()
    try:
        with all_strung(options.hosts) as cables:
            room = Room(new_path(), step_s=options.step, polls=1, size="")
            fleet = Fleet(room)
            return carry_out(lambda: _run(fleet, cables, options), room, fleet.end, options.keep)
    except pytest.skip.Exception as error:
        print(f"soak: {error}", file=sys.stderr)
        return UNUSABLE


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/soak cut", description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=100, help="one after another")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first round; the next has one more"
    )
    parser.add_argument("--hosts", type=int, default=2, help="how many nodes there are")
    parser.add_argument("--step", type=float, default=0.1, help="seconds an agent takes for a step")
    parser.add_argument("--keep", default="", help="copy all of it to this new folder at the end")
    return parser.parse_args()


class Neighbours(People):
    """The people around a forge over HTTP, and its CI."""

    def __init__(self, fleet: Fleet) -> None:
        """Nothing is filed yet."""
        super().__init__(fleet.room, ())
        self.side = fleet.side
        self.side.admit("ada", "rita")
        self.issue = 0
        """What was filed last."""

    def add(self) -> int:
        """File another issue."""
        title = f"Add part {len(self.parts) + 1} (needs: {Need.NOTHING})"
        self.parts += (Part(title, Need.NOTHING, 0.0),)
        issues = self.side.open_as("ada").issues
        self.issue = issues.add(title, "Please.", ("backlog",), author="ada").number
        self.filed += 1
        return self.issue

    def _review(self, pull: PullRequest, issue: int, *, wants_change: bool) -> None:
        if pull.state is not PullState.OPEN or issue != self.issue:
            return
        if pull.check.state is not CheckState.SUCCESS:
            self.side.finish(pull.head, CheckState.SUCCESS)
        elif not any(review.head == pull.head for review in pull.reviews):
            forge = self.side.open_as("rita")
            forge.pulls.review(pull.number, ReviewState.APPROVED, author="rita")

    def _take_up_again(self, issue: Issue) -> None:
        issues = self.side.open_as("ada").issues
        issues.remove_label(issue.number, "blocked")
        issues.add_label(issue.number, "backlog")
        self.given_up[issue.number] += 1


@dataclass
class Round:
    """An issue and what cuts it off; `host` is the node that is struck, '' for none yet."""

    fleet: Fleet
    people: Neighbours
    writers: Writers
    outage: Outage
    issue: int = 0
    host: str = ""
    attempt: int = 0
    is_taken: bool = False
    is_over: bool = False
    is_missed: bool = False
    """The issue was done before."""
    _came_at: float = 0.0
    _until: float = 0.0
    _end: Callable[[], None] = lambda: None
    _notes: int = 0
    _noted_at: float = 0.0

    def play(self) -> bool:
        """Play it to its end; False if that did not come in time."""
        self.issue = self.people.add()
        times = {"every_s": LOOK_S, "people_every_s": PEOPLE_S, "deadline_s": ROUND_S}
        try:
            in_time = play(self._look, self._meet_people, **times)
        finally:
            self._finish()
        return in_time and await_quiet(self.fleet)

    def _look(self, elapsed_s: float) -> None:
        self.fleet.room.keep_polling()
        if self.is_over or self.is_missed:
            return
        if self.host:
            self._watch(elapsed_s)
            if elapsed_s > self._until:
                self._finish()
            elif self.outage.kind is Kind.FLAPPING:
                shake(self.fleet.cables[self.host], self.outage.dice)
        elif not self._came_at:
            self._came_at = elapsed_s if self._has_come() else 0.0
        elif elapsed_s >= self._came_at + self.outage.after_s:
            self._begin(elapsed_s)

    def _begin(self, elapsed_s: float) -> None:
        placed = self._find_placed()
        if placed is None:
            self.is_missed = True
            return
        self.host, self.attempt = placed.host, placed.attempt
        self._end = strike(self.fleet, self.host, self.outage.kind)
        self._until = elapsed_s + (TAKEN_S if self.outage.until_taken else self.outage.for_s)

    def _watch(self, elapsed_s: float) -> None:
        """Find out whether the issue was taken over, or done by a node that home does not reach."""
        placed = self._find_placed()
        is_next = placed is not None and placed.attempt > self.attempt and placed.handle
        if not self.is_taken and (is_next or placed is None):
            self.is_taken = bool(is_next)
            if self.outage.until_taken:
                self._until = min(self._until, elapsed_s + self.outage.for_s)

    def _finish(self) -> None:
        if self.host and not self.is_over:
            self._end()
            self.is_over = True

    def _find_placed(self) -> Placement | None:
        return next((one for one in self.fleet.list_placed() if one.issue == self.issue), None)

    def _has_come(self) -> bool:
        """Whether the moment is there."""
        moment, room = self.outage.moment, self.fleet.room
        if moment is Moment.CLAIM:
            return self._find_placed() is not None
        if moment is Moment.PUSH:
            updates = read_updates(read_text(room.refs))
            return any(int(old, 16) and ref == f"{BRANCH}{self.issue}" for old, _, ref in updates)
        told = [one for one in twice.ledger(read_text(room.told)) if one.issue == self.issue]
        kind, words = SIGNS[moment]
        return any(one.kind == kind and words in one.text for one in told)

    def _meet_people(self, elapsed_s: float) -> bool:
        if self.people.look(elapsed_s) and (self.is_over or self.is_missed or not self._came_at):
            return True
        placed = self._find_placed()
        is_due = self._notes < NOTES and elapsed_s > self._noted_at + NOTE_S
        if is_due and placed and placed.handle:
            self.writers.write([self.issue])
            self._noted_at, self._notes = elapsed_s, self._notes + 1
        return False


SIGNS = {
    Moment.BEGIN: ("begins", ""),
    Moment.PHASE: ("phase", "awaiting_ci"),
    Moment.REVIEW: ("told", "[sm] CI passed"),
    Moment.MERGE: ("told", "[sm] Review: approved"),
}
"""By what of an agent's ledger a moment is known."""


@dataclass
class Story:
    """What has happened so far; `faults` are lines of figures, with the seed of their round."""

    fleet: Fleet
    people: Neighbours
    writers: Writers
    books: Books
    struck: Counter[str] = field(default_factory=Counter)
    moments: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    taken: int = 0
    seen: set[str] = field(default_factory=set)
    bare: set[str] = field(default_factory=set)
    """Hosts that have lost their state: their next session clears the worktree of the last one."""

    def count(self, one: Round) -> None:
        """Count what a round had."""
        self.missed += not one.host
        self.taken += one.is_taken
        if one.host:
            self.bare.discard(one.host)
            self.bare |= {one.host} if one.outage.kind is Kind.BOOT else set()
            self.struck[one.outage.kind] += 1
            self.moments[one.outage.moment] += 1

    def figures(self) -> Iterator[Figure]:
        """The table, in its order."""
        outcome = HostOutcome(self.fleet, self.struck, self.people, self.writers)
        for figure in outcome.figures():
            wrong = [line for line in figure.wrong if not self._is_known(figure, line)]
            yield replace(figure, wrong=tuple(wrong))
        moments = ", ".join(f"{moment} {n}" for moment, n in sorted(self.moments.items()))
        yield Figure("troubles came after", f"{moments}; too late {self.missed}")
        yield Figure("taken over by another host meanwhile", str(self.taken))
        found = {
            "late acts of an overtaken host": list_late(self.books.written),
            "commits pushed or saved, and lost": self.books.list_lost(),
            "left: processes on hosts": self._list_left(),
        }
        for what, lines in found.items():
            yield Figure(what, str(len(lines)), tuple(lines))
        again = list_heard_again(twice.ledger(read_text(self.fleet.room.told)))
        yield Figure("messages that a successor heard, too", str(len(again)))
        late = self.books.find_pushed_late()
        yield Figure("late pushes that a successor saw", str(len(late)))
        yield Figure("writes of hosts to the forge", str(len(self.books.written)))

    def _is_known(self, figure: Figure, line: str) -> bool:
        """Whether docs/HOSTS.md says that it comes to that where no answer comes back."""
        if figure.name == "messages heard twice":
            return line in list_heard_again(twice.ledger(read_text(self.fleet.room.told)))
        return figure.name == "left: worktrees" and line.partition(":")[0] in self.bare

    def _list_left(self) -> list[str]:
        """What runs on hosts that have no session, beside what answers home; it ends by itself."""
        deadline, left = Deadline(LEFT_S), [""]
        while left and not deadline.is_over:
            left = [
                f"{name}: {words}"
                for name, machine in self.fleet.machines.items()
                for one in machine.processes()
                if (words := _read_words(one.pid)) and not ANSWERING.search(words)
            ]
        return left

    def list_new(self) -> list[str]:
        """What is wrong since this was asked last."""
        wrong = [f"{one.name}: {line}" for one in self.figures() for line in one.wrong]
        new = [line for line in wrong if line not in self.seen]
        self.seen |= set(new)
        return new


def list_heard_again(told: Sequence[Told]) -> list[str]:
    """Messages that several agents have heard, each once, and each on another host."""
    places = {one.pid: one.text for one in told if one.kind == "begins"}
    heard = [
        (number, places.get(one.pid, ""))
        for one in told
        if one.kind == "told"
        for number in NOTE.findall(one.text)
    ]
    times = Counter(number for number, _ in heard)
    hosts = Counter(number for number, _ in set(heard))
    return [f"[note {one}] {n} times" for one, n in times.items() if n > 1 and hosts[one] == n]


def _read_words(pid: int) -> str:
    """The command line of a process; '' if there is none any more."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return ""


def _run(fleet: Fleet, cables: Sequence[Cable], options: argparse.Namespace) -> int:
    for cable in cables:
        cable.hasten()
    how = cables[0].spoil()
    cables[0].mend()
    say(f"seed {options.seed}: {options.rounds} rounds, in '{fleet.room.path}'")
    say(f"slow and lossy: {how or 'left out, tc has no queue for it here'}")
    settings = {"hosts": options.hosts, "sessions": 3}
    fleet.build(SETTINGS, **settings, lost_after=LOST_AFTER, cables=cables)
    people = Neighbours(fleet)
    story = Story(fleet, people, Writers(fleet.room, random.Random(options.seed)), Books(fleet))
    began, faults, in_time = time.monotonic(), list[str](), True
    for seed in range(options.seed, options.seed + options.rounds):
        outage = draw(seed)
        if outage.kind is Kind.SLOW and not how:
            continue
        one = Round(fleet, people, story.writers, outage)
        round_began = time.monotonic()
        in_time = one.play()
        story.count(one)
        new = story.list_new()
        took_s = time.monotonic() - round_began
        where = f"{one.host or 'nobody'}: {outage}"
        say(
            f"{'!!' if new or not in_time else '  '} {seed:5} {took_s:5.1f} s  #{one.issue} {where}"
        )
        for line in new[:20]:
            say(f"         {line}")
        faults += [f"seed {seed}: {line}" for line in new]
        if not in_time:
            faults.append(f"seed {seed}: not all had ended within {ROUND_S:.0f} s")
            break
    fleet.room.stop_polling()
    figures = [*story.figures(), Figure("faults, by round", str(len(faults)), tuple(faults))]
    return tell(fleet.room, people, figures, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
