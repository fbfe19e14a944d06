"""What the world itself knows of an issue: of what it has done, and of what agents were told."""

from __future__ import annotations

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
    lost_login: bool = False
    """Whether it has lost its login, and no answer of its model has come since."""
    merged: bool = False
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
