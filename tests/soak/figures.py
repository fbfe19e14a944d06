"""What came of it, asked of git, the kernel, the forge and the agents' own ledger."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sm.forge import Issue
from sm.workflow.effects import BOT
from tests.helpers import git
from tests.soak.hunt import Hunt
from tests.soak.people import People
from tests.soak.room import Room
from tests.soak.work import file_of

CLAIM = re.compile(r"^(0+) ([0-9a-f]+) refs/sm/claims/(\d+)$", re.MULTILINE)
ENTRIES = frozenset({"journal.jsonl", "health.jsonl", "new.lock", "sessions", "projects", "probe"})
OF_PROJECT = frozenset({"forge.json", "due", "forge.lock", "poll.lock", "ci"})
"""What stays in the private directory, and in that of a project: see docs/STATE.md."""


@dataclass(frozen=True)
class Figure:
    """A line of the table. What is `wrong` is named; a run with any such line has failed."""

    name: str
    value: str
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """A line of the agents' ledger."""

    issue: int
    pid: int
    kind: str
    text: str


@dataclass
class Outcome:
    """Everything that is known at the end."""

    room: Room
    hunt: Hunt
    people: People

    def __post_init__(self) -> None:
        """Read what is read more than once."""
        self.issues, self.pulls, self.problems = self.room.context.forge.overview()
        self.told = _ledger(self.room.told)

    def figures(self) -> Iterator[Figure]:
        """The table, in its order."""
        yield from self._merges()
        yield from self._duplicates()
        yield from self._left()
        yield from self._told()

    def _merges(self) -> Iterator[Figure]:
        count = len(self.people.parts)
        merges = self._merge_commits()
        once = [issue for issue in self.issues if self._merged(issue, merges) == 1]
        wrong = [f"#{i.number} merged {self._merged(i, merges)} times" for i in self.issues]
        wrong = [line for line in wrong if not line.endswith(" 1 times")]
        wrong += ["not every issue could be filed"] * (len(self.issues) != count)
        yield Figure("issues merged exactly once", f"{len(once)} of {count}", tuple(wrong))
        given_up = self.people.given_up
        yield Figure("given up by the rules, taken up again", _counted(given_up))
        yield Figure("questions answered", str(self.people.answered.total()))

    def _merge_commits(self) -> Counter[str]:
        """How often each branch was merged; the subject names it."""
        log = git(self.room.repository.bare, "log", "--merges", "--format=%s", "main")
        return Counter(re.findall(r"^Merge branch '([^']+)'", log, re.MULTILINE))

    def _merged(self, issue: Issue, merges: Counter[str]) -> int:
        listing = git(self.room.repository.bare, "ls-tree", "-r", "--name-only", "main").split()
        times = merges[f"fix/{issue.number}"]
        return times if file_of(issue.number) in listing else 0

    def _duplicates(self) -> Iterator[Figure]:
        found = {
            "comments": self._comments_twice(),
            "prompts typed": self._prompts_twice(),
            "pull requests": self._pulls_twice(),
            "processes for one thing": [f"{k} {what}" for k, what in sorted(self.hunt.doubles)],
            "claims": self._claims_twice(),
            "worktrees": self._worktrees_twice(),
        }
        for what, twice in found.items():
            yield Figure(f"duplicates: {what}", str(len(twice)), tuple(twice))

    def _comments_twice(self) -> list[str]:
        """The same marker twice, or more questions than the agents asked, endings than endings."""
        twice = []
        for issue in self.issues:
            marked = Counter(c.marker for c in issue.comments if c.marker)
            ours = Counter(c.body for c in issue.comments if c.author == BOT)
            asked = sum(
                t.issue == issue.number and t.text.startswith("escalate") for t in self.told
            )
            allowed = max(1, asked, self.people.given_up[issue.number])
            twice += [f"#{issue.number} {body[:60]!r}" for body, n in ours.items() if n > allowed]
            twice += [f"#{issue.number} marker {mark}" for mark, n in marked.items() if n > 1]
        return twice

    def _prompts_twice(self) -> list[str]:
        """What an agent was told twice without a word of its own in between.

        A first prompt has a nonce, so no two agents have the same one.
        """
        twice, since, first = [], set[tuple[int, str]](), set[str]()
        for told in self.told:
            if told.kind == "phase":
                since = {key for key in since if key[0] != told.pid}
            elif told.kind == "told":
                opens = told.text.startswith("You ")
                if (told.pid, told.text) in since or (opens and told.text in first):
                    twice.append(f"#{told.issue} {told.text[:70]!r}")
                since.add((told.pid, told.text))
                first |= {told.text} if opens else set()
        return twice

    def _pulls_twice(self) -> list[str]:
        branches = Counter(pull.branch for pull in self.pulls)
        return [f"{branch}: {n}" for branch, n in branches.items() if n > 1]

    def _claims_twice(self) -> list[str]:
        """An issue is claimed once, and again for each time that a person has it taken up again."""
        taken = Counter(int(found[3]) for found in CLAIM.finditer(_text(self.room.refs)))
        given_up = self.people.given_up
        return [f"#{issue}: {n}" for issue, n in taken.items() if n > 1 + given_up[issue]]

    def _worktrees_twice(self) -> list[str]:
        places: dict[int, set[str]] = {}
        for told in self.told:
            if told.kind == "begins":
                places.setdefault(told.issue, set()).add(told.text)
        return [f"#{issue}: {', '.join(p)}" for issue, p in places.items() if len(p) > 1]

    def _left(self) -> Iterator[Figure]:
        room = self.room
        found = {
            "processes": [str(process.pid) for process in room.processes()],
            "worktrees": [*_worktrees(room), *map(str, room.context.project.worktrees.glob("*"))],
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
        crashes = [_text(log) for log in self.room.path.rglob("crash.log")]
        yield Figure(
            "unexpected errors of sm", str(len(crashes)), tuple(text[-3000:] for text in crashes)
        )
        kinds = Counter(told.kind for told in self.told)
        riddles = [told.text[:200] for told in self.told if told.kind == "riddle"]
        yield Figure("messages that no agent understood", str(kinds["riddle"]), tuple(riddles))
        yield Figure("agents begun, messages heard", f"{kinds['begins']}, {kinds['told']}")
        yield Figure("CI failures that were not the work's", str(kinds["blameless"]))
        yield Figure("files of the forge that could not be read", str(len(self.problems)))


def _ledger(path: Path) -> list[Told]:
    whole = _text(path).rpartition("\n")[0]
    entries = [json.loads(line) for line in whole.split("\n") if line]
    return [Told(e["issue"], e["pid"], e["kind"], e["text"]) for e in entries]


def _text(path: Path) -> str:
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
    root, directory = room.context.root, room.context.directory
    left = [path for path in root.path.iterdir() if path != root.private]
    left += [path for path in root.private.iterdir() if path.name not in ENTRIES]
    left += [*root.sessions.iterdir(), *(directory.path / "ci").glob("*")]
    left += [path for path in directory.path.iterdir() if path.name not in OF_PROJECT]
    return [str(path) for path in left]
