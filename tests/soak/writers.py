"""People who write to the agents, wherever these are, and what became of each message."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sm.base.issue_id import IssueId
from tests.soak.room import Room
from tests.soak.twice import Told
from tests.soak.work import NAME

NOTE = re.compile(r"\[note (\d+)\]")


@dataclass(frozen=True)
class Note:
    """A message that was sent to an issue: its id if it was taken, and what was said to that."""

    number: int
    issue: IssueId
    ident: str
    said: str


@dataclass
class Writers:
    """`notes` are all that were sent."""

    room: Room
    dice: random.Random
    notes: list[Note] = field(default_factory=list)

    def write(self, issues: list[IssueId]) -> None:
        """Send a message to one of these issues."""
        issue, number = self.dice.choice(issues), len(self.notes) + 1
        done = self.room.run("sm", "send", "--json", f"{NAME}#{issue}", f"[note {number}] go on")
        said = (done.stdout + done.stderr).strip()
        ident = json.loads(done.stdout)["id"] if done.stdout else ""
        self.notes.append(Note(number, issue, ident, said))


def count_heard(told: Iterable[Told]) -> Counter[int]:
    """How often each message was told to an agent."""
    return Counter(
        int(number) for one in told if one.kind == "told" for number in NOTE.findall(one.text)
    )


def list_lost(notes: Iterable[Note], heard: Counter[int], told_of: str) -> list[str]:
    """Those that were taken, that no agent has heard, and of which nobody was told."""
    return [
        f"[note {one.number}] to #{one.issue}: {one.said[:120]}"
        for one in notes
        if one.ident and not heard[one.number] and one.ident not in told_of
    ]
