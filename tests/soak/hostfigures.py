"""What came of `bin/soak hosts`, asked of git, the forge, every host and the agents' ledger."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sm.issues.work.kept_worktrees import list_all
from sm.plugins.hosts.messages.outbox import list_kept
from tests.helpers import git
from tests.plugins.hosts.world import Machine
from tests.soak import twice
from tests.soak.figures import Figure, count_merges, read_text
from tests.soak.fleet import Fleet
from tests.soak.people import People
from tests.soak.work import file_of
from tests.soak.writers import Writers, count_heard, list_lost


@dataclass
class HostOutcome:
    """Everything that is known at the end."""

    fleet: Fleet
    struck: Counter[Any]
    people: People
    writers: Writers

    def __post_init__(self) -> None:
        """Read what is read more than once."""
        self.room = self.fleet.room
        found = self.room.project.forge.observe(start_checks=False)
        self.issues, self.pulls = found.issues, found.pulls
        self.told = twice.ledger(read_text(self.room.told))

    def figures(self) -> Iterator[Figure]:
        """The table, in its order."""
        struck = ", ".join(f"{kind} {n}" for kind, n in sorted(self.struck.items()))
        yield Figure("troubles", struck)
        yield from self._merges()
        yield from self._messages()
        yield from self._duplicates()
        yield from self._left()
        yield from self._errors()

    def _merges(self) -> Iterator[Figure]:
        bare, count = self.room.repository.bare, len(self.people.parts)
        merges = count_merges(bare)
        listing = git(bare, "ls-tree", "-r", "--name-only", "main").split()
        times = {
            issue.number: merges[f"fix/{issue.number}"] * (file_of(issue.number) in listing)
            for issue in self.issues
        }
        wrong = [f"#{number} merged {n} times" for number, n in times.items() if n != 1]
        wrong += ["not every issue could be filed"] * (len(times) != count)
        once = sum(n == 1 for n in times.values())
        yield Figure("issues merged exactly once", f"{once} of {count}", tuple(wrong))
        attempts = Counter(
            entry["attempt"]
            for line in read_text(self.room.project.root.journal).splitlines()
            if (entry := json.loads(line)).get("kind") == "placed"
        )
        told = ", ".join(f"{n} for the {k}. time" for k, n in sorted(attempts.items()))
        yield Figure("issues placed", told)
        yield Figure("questions answered", str(self.people.answered.total()))

    def _messages(self) -> Iterator[Figure]:
        notes, heard = self.writers.notes, count_heard(self.told)
        journals = [self.room.project.root.journal]
        journals += [path for one in self._states() for path in one.rglob("journal.jsonl")]
        lost = list_lost(notes, heard, "\n".join(_list_problems(journals)))
        lost += [f"{one.id} still waits" for one in list_kept(self.room.project.directory)]
        taken = sum(one.ident != "" for one in notes)
        yield Figure("messages sent", f"{len(notes)}, taken {taken}, heard {len(heard)}")
        refused = Counter(one.said for one in notes if not one.ident)
        for said, n in refused.most_common(5):
            yield Figure(f"    refused {n}", said[:160])
        yield Figure("messages lost", str(len(lost)), tuple(lost))
        more = [f"[note {number}] {n} times" for number, n in heard.items() if n > 1]
        yield Figure("messages heard twice", str(len(more)), tuple(more))

    def _duplicates(self) -> Iterator[Figure]:
        given_up = self.people.given_up
        found = {
            "comments": twice.comments(self.issues, self.told, given_up, self.people.answered),
            "pull requests": twice.pulls(self.pulls),
            "claims": twice.claims(read_text(self.room.refs), given_up),
        }
        for what, lines in found.items():
            yield Figure(f"duplicates: {what}", str(len(lines)), tuple(lines))

    def _left(self) -> Iterator[Figure]:
        remote = git(self.room.repository.bare, "for-each-ref", "--format=%(refname)").split()
        machines = self.fleet.machines.values()
        worktrees = [found for one in machines for found in list_worktrees(one)]
        found = {
            "sessions": [f"{one.place.name}" for one in machines if one.has_sessions()],
            "placements": [f"#{one.issue} on {one.host}" for one in self.fleet.list_placed()],
            "refs of the remote": [ref for ref in remote if ref != "refs/heads/main"],
            "worktrees": [line for line, is_kept in worktrees if not is_kept],
            "labels": [f"#{i.number}: {', '.join(i.labels)}" for i in self.issues if i.labels],
        }
        for what, left in found.items():
            yield Figure(f"left: {what}", str(len(left)), tuple(left))
        kept = [f"{one.place.name} {ref}" for one in machines for ref in list_overtaken(one)]
        yield Figure("work of overtaken attempts that was kept", str(len(kept)))
        kept = [line for line, is_kept in worktrees if is_kept]
        yield Figure("worktrees with work that is nowhere else", str(len(kept)))

    def _errors(self) -> Iterator[Figure]:
        crashes = [read_text(log) for log in self.room.path.rglob("crash.log")]
        crashed = tuple(text[-3000:] for text in crashes)
        yield Figure("unexpected errors of sm", str(len(crashes)), crashed)
        kinds = Counter(told.kind for told in self.told)
        riddles = tuple(told.text[:200] for told in self.told if told.kind == "riddle")
        yield Figure("messages that no agent understood", str(kinds["riddle"]), riddles)
        yield Figure("agents begun, messages heard", f"{kinds['begins']}, {kinds['told']}")

    def _states(self) -> Iterator[Path]:
        """The state roots of all hosts, also those that were lost."""
        yield from (one.root.path for one in self.fleet.machines.values())
        yield self.room.kept


def _list_problems(journals: Iterable[Path]) -> Iterator[str]:
    """What was told of messages that could not be delivered."""
    for path in journals:
        yield from (line for line in read_text(path).splitlines() if "was not taken" in line)


def list_worktrees(machine: Machine) -> Iterator[tuple[str, bool]]:
    """What stands for each worktree on a host, and whether it has to be kept for what is in it."""
    for one in list_all(machine.project):
        lost = one.problem or "; ".join(one.lost)
        yield f"{machine.place.name}: {one.path}: {lost}", bool(lost)


def list_overtaken(machine: Machine) -> list[str]:
    """The branches on a host in which the work of attempts is that were overtaken."""
    place = "refs/heads/sm/overtaken"
    return git(machine.place / "clone", "for-each-ref", "--format=%(refname)", place).split()
