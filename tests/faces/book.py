"""What the world itself knows of an issue: of what it has done, and of what agents were told."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum

from tests.viewer import Viewer


class Doing(StrEnum):
    """What an agent is at, as its client has it."""

    BUSY = "busy"
    IDLE = "idle"
    QUESTION = "question"
    DIALOG = "dialog"
    FAILED = "failed"
    LOCKED_OUT = "locked out"
    DEAD = "dead"


class There(StrEnum):
    """What a person is at in a terminal."""

    NOBODY = "nobody"
    LOOKS = "looks"
    """By `sm attach -r`: no key reaches the agent."""
    SITS = "sits"
    TYPED = "typed"


@dataclass
class Book:
    """One issue. `head` is what its agent has pushed last, and `ci`, `review` are of that."""

    project: str
    issue: int
    doing: Doing = Doing.BUSY
    prompts: int = 0
    """Turns that were begun, as its agents have noted."""
    phase: str = ""
    answered: bool = False
    """Whether a person has answered the question of the phase."""
    asked: str = ""
    """The words of the question with which it has written its phase."""
    question: str = ""
    """The words of the question with which its last turn has ended."""
    news: list[str] = field(default_factory=list)
    """What `dev-poll --loop` has told of it."""
    news_before: int = 0
    """How much of that was told before the agent has asked last."""
    commits: int = 0
    head: str = ""
    ci: str = ""
    review: str = ""
    merged: bool = False
    merged_at_work: bool = False
    """Whether it was worked on when it was merged: else there is nobody whom the merge concerns."""
    cents: int = 0
    requests: int = 0
    unpriced: int = 0
    """Requests to a model whose price nobody knows."""
    person: There = There.NOBODY
    viewer: Viewer | None = None
    record: bytes = b""
    """What was in the session's record before that was damaged."""

    @property
    def key(self) -> tuple[str, int]:
        """What names it."""
        return self.project, self.issue

    @property
    def name(self) -> str:
        """What people call its session."""
        return f"{self.project}#{self.issue}"

    @property
    def session(self) -> str:
        """Its session's id."""
        return f"dev-{self.project}-{self.issue}"


@dataclass
class Account:
    """What the one account of all agents has met; sessions are named as people do.

    `lost_at` is when its login was lost, by a clock that nobody sets, 0 as long as it is not.
    """

    lost_at: float = 0.0
    is_alone: bool = False
    """Whether none was there that could have shown that it is one session alone."""
    fails: bool = False
    """Whether no request has succeeded since the last failure."""
    resting: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    """Those of them that were told to go on."""
    asking: set[str] = field(default_factory=set)
    """Those that have sent a request since the last failure."""
    is_unsure: bool = False
    """Whether one that was told to go on has failed again, while others work."""

    def fail(self, name: str, others: set[str], *, access: bool) -> None:
        """Have a turn of the session fail; the `others` are all that are worked on."""
        if not self.fails and name in self.tried:
            self.is_unsure = True
            return
        if not self.fails:
            self.lost_at, self.is_alone = 0.0, False
        if access:
            self.is_alone |= not (others - self.resting)
            self.lost_at = self.lost_at or time.monotonic()
        self.fails, self.asking = True, set()
        self.resting.add(name)
        self.tried.discard(name)

    def ask(self, name: str) -> None:
        """Have the session send a request."""
        self.asking.add(name)
        if name in self.resting:
            self.tried.add(name)

    def answer(self, name: str) -> None:
        """Have an answer come to the session, which proves something if it has asked."""
        if name in self.asking:
            self.lost_at, self.fails, self.is_unsure = 0.0, False, False
            self.resting.discard(name)
            self.tried.discard(name)

    def keep(self, names: set[str]) -> None:
        """Forget sessions that are over; with the last one that rests, the fault is over, too."""
        self.resting &= names
        self.tried &= names
        if not self.resting:
            self.lost_at, self.fails, self.is_unsure = 0.0, False, False
