"""What is there twice, and should not be: a line for each, none where all is well."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sm.adapters.forge.model import BOT, Issue, PullRequest
from sm.issues.rules.needs import CAUSES

CLAIM = re.compile(r"^0+ [0-9a-f]+ refs/sm/claims/(\d+)$", re.MULTILINE)
"""What the remote writes down of a claim that it takes."""


@dataclass(frozen=True)
class Told:
    """A line of the agents' ledger: what the process `pid` was told, or wrote as its phase."""

    issue: int
    pid: int
    kind: str
    text: str


def ledger(text: str) -> list[Told]:
    """The lines of the ledger; one that a killed agent has left unfinished is none."""
    whole = text.rpartition("\n")[0]
    entries = [json.loads(line) for line in whole.split("\n") if line]
    return [Told(e["issue"], e["pid"], e["kind"], e["text"]) for e in entries]


def comments(
    issues: Iterable[Issue], told: Iterable[Told], given_up: Counter[int], answered: Counter[int]
) -> list[str]:
    """Comments of one marker, more questions than were asked, more endings than there were."""
    asked = Counter(t.issue for t in told if t.kind == "phase" and t.text.startswith("escalate"))
    found = []
    for issue in issues:
        marked = Counter(c.marker for c in issue.comments if c.marker)
        ours = Counter(c.body for c in issue.comments if c.author == BOT)
        # What sm asks by itself may be asked again after each answer.
        own = max(given_up[issue.number], answered[issue.number] + 1)
        for body, count in ours.items():
            if count > max(1, asked[issue.number] if CAUSES["escalate"] in body else own):
                found.append(f"#{issue.number} {body[:60]!r}")
        found += [f"#{issue.number} marker {mark}" for mark, n in marked.items() if n > 1]
    return found


def prompts(told: Iterable[Told], killed: Collection[int] = ()) -> list[str]:
    """What an agent was told twice without a phase of its own in between.

    A first prompt has a nonce, so no two agents have the same one. The exception is one that was
    `killed` before it said anything: the launch was not written down yet, so it is repeated.
    """
    found, since = [], set[tuple[int, str]]()
    opened, spoke = dict[str, int](), set[int]()
    for one in told:
        if one.kind == "phase":
            since = {key for key in since if key[0] != one.pid}
            spoke.add(one.pid)
        elif one.kind == "told":
            key, opens = (one.pid, one.text), one.text.startswith("You ")
            earlier = opened.get(one.text) if opens else None
            repeated = earlier is not None and (earlier not in killed or earlier in spoke)
            if key in since or repeated:
                found.append(f"#{one.issue} {one.text[:70]!r}")
            since.add(key)
            if opens:
                opened[one.text] = one.pid
    return found


def pulls(every: Iterable[PullRequest]) -> list[str]:
    """Branches that more than one pull request was opened for."""
    branches = Counter(pull.branch for pull in every)
    return [f"{branch}: {n}" for branch, n in branches.items() if n > 1]


def claims(refs: str, given_up: Counter[int]) -> list[str]:
    """Issues claimed more often than once, and once more for each time they were taken up again."""
    taken = Counter(int(number) for number in CLAIM.findall(refs))
    return [f"#{issue}: {n}" for issue, n in taken.items() if n > 1 + given_up[issue]]


def worktrees(told: Iterable[Told]) -> list[str]:
    """Issues whose agents began in more than one place."""
    places: dict[int, set[str]] = {}
    for one in told:
        if one.kind == "begins":
            places.setdefault(one.issue, set()).add(one.text)
    return [f"#{issue}: {', '.join(sorted(p))}" for issue, p in places.items() if len(p) > 1]
