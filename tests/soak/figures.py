"""What came of it, asked of git, the kernel, the forge and the agents' own ledger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sm.adapters.forge.model import Issue
from tests.helpers import git
from tests.soak import twice
from tests.soak.hunt import Hunt
from tests.soak.people import People
from tests.soak.room import Room
from tests.soak.victims import describe
from tests.soak.work import file_of

MERGED = re.compile(
    r"^Merge (?:branch '([^']+)'|pull request '.*' \(#\d+\) from (\S+))", re.MULTILINE
)
"""The subject of a merge by the embedded forge, or by Forgejo."""
ENTRIES = frozenset(
    {"journal.jsonl", "health.jsonl", "new.lock", "passes", "passes.json", "passes.lock"}
    | {"sessions", "projects", "probe", "logs", "false-starts"}
)
EMPTY = ("ci", "slots", "slot-line")
OF_PROJECT = frozenset(
    {"forge.json", "due", "forge.lock", "poll.lock", "polled", "slots.lock", "slot-freed"}
    | {"verdicts.lock", *EMPTY}
)
"""What stays in the private directory, and in that of a project: see docs/STATE.md."""


@dataclass(frozen=True)
class Figure:
    """A line of the table. What is `wrong` is named; a run with any such line has failed."""

    name: str
    value: str
    wrong: tuple[str, ...] = ()


@dataclass
class Outcome:
    """Everything that is known at the end."""

    room: Room
    hunt: Hunt
    people: People

    def __post_init__(self) -> None:
        """Read what is read more than once."""
        found = self.room.project.forge.observe(start_checks=False)
        self.issues, self.pulls, self.problems = found.issues, found.pulls, found.problems
        self.told = twice.ledger(read_text(self.room.told))

    def figures(self) -> Iterator[Figure]:
        """The table, in its order."""
        yield from self._merges()
        yield from self._duplicates()
        yield from self._left()
        yield from self._told()

    def _merges(self) -> Iterator[Figure]:
        count = len(self.people.parts)
        merges = count_merges(self.room.repository.bare)
        once = [issue for issue in self.issues if self._merged(issue, merges) == 1]
        wrong = [f"#{i.number} merged {self._merged(i, merges)} times" for i in self.issues]
        wrong = [line for line in wrong if not line.endswith(" 1 times")]
        wrong += ["not every issue could be filed"] * (len(self.issues) != count)
        yield Figure("issues merged exactly once", f"{len(once)} of {count}", tuple(wrong))
        given_up = self.people.given_up
        yield Figure("given up by the rules, taken up again", _counted(given_up))
        yield Figure("questions answered", str(self.people.answered.total()))

    def _merged(self, issue: Issue, merges: Counter[str]) -> int:
        listing = git(self.room.repository.bare, "ls-tree", "-r", "--name-only", "main").split()
        times = merges[f"fix/{issue.number}"]
        return times if file_of(issue.number) in listing else 0

    def _duplicates(self) -> Iterator[Figure]:
        given_up = self.people.given_up
        found = {
            "comments": twice.comments(self.issues, self.told, given_up, self.people.answered),
            "prompts typed": twice.prompts(self.told, self.hunt.killed),
            "pull requests": twice.pulls(self.pulls),
            "processes for one thing": [f"{k} {what}" for k, what in sorted(self.hunt.doubles)],
            "claims": twice.claims(read_text(self.room.refs), given_up),
            "worktrees": twice.worktrees(self.told),
        }
        for what, lines in found.items():
            yield Figure(f"duplicates: {what}", str(len(lines)), tuple(lines))

    def _left(self) -> Iterator[Figure]:
        room = self.room
        found = {
            "processes": [describe(process) for process in room.processes()],
            "worktrees": [*_worktrees(room), *map(str, room.project.settings.worktrees.glob("*"))],
            "branches and claims": _refs(room),
            "files of state": _state(room),
            "labels": [f"#{i.number}: {', '.join(i.labels)}" for i in self.issues if i.labels],
            "locks of git": [
                str(path) for path in room.disk.rglob("*.lock") if ".git" in str(path)
            ],
        }
        for what, left in found.items():
            yield Figure(f"left: {what}", str(len(left)), tuple(left))

    def _told(self) -> Iterator[Figure]:
        crashes = [read_text(log) for log in self.room.path.rglob("crash.log")]
        yield Figure(
            "unexpected errors of sm", str(len(crashes)), tuple(text[-3000:] for text in crashes)
        )
        kinds = Counter(told.kind for told in self.told)
        riddles = [told.text[:200] for told in self.told if told.kind == "riddle"]
        yield Figure("messages that no agent understood", str(kinds["riddle"]), tuple(riddles))
        yield Figure("agents begun, messages heard", f"{kinds['begins']}, {kinds['told']}")
        yield Figure("CI failures that were not the work's", str(kinds["blameless"]))
        yield Figure("files of the forge that could not be read", str(len(self.problems)))


def count_merges(bare: Path) -> Counter[str]:
    """How often each branch was merged; the subject names it."""
    log = git(bare, "log", "--merges", "--format=%s", "main")
    return Counter(one or other for one, other in MERGED.findall(log))


def read_text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _counted(issues: Counter[int]) -> str:
    named = ", ".join(f"#{issue} {n}x" for issue, n in sorted(issues.items()))
    return f"{issues.total()}" + (f" ({named})" if named else "")


def _worktrees(room: Room) -> list[str]:
    listing = git(room.repository.clone, "worktree", "list", "--porcelain").splitlines()
    return [line for line in listing if line.startswith("worktree ")][1:]


def _refs(room: Room) -> list[str]:
    remote = git(room.repository.bare, "for-each-ref", "--format=%(refname)").split()
    local = git(room.repository.clone, "for-each-ref", "--format=%(refname)", "refs/heads").split()
    return [f"{ref} of the remote" for ref in remote if ref != "refs/heads/main"] + [
        f"{ref} of the clone" for ref in local if ref != "refs/heads/main"
    ]


def _state(room: Room) -> list[str]:
    root, directory = room.project.root, room.project.directory
    left = [path for path in root.path.iterdir() if path != root.private]
    left += [path for path in root.private.iterdir() if path.name not in ENTRIES]
    left += root.sessions.iterdir()
    left += root.false_starts.glob("*")
    left += (path for folder in EMPTY for path in (directory.path / folder).glob("*"))
    left += [path for path in directory.path.iterdir() if path.name not in OF_PROJECT]
    return [str(path) for path in left]
