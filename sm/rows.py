"""What a line of the reaction matrix is made of."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sm.facts import Facts
from sm.history import Count, Verb


class Step(Struct, frozen=True):
    """One action; `text` names the message that goes with it (see prompts)."""

    verb: Verb
    text: str = ""

    def __str__(self) -> str:
        """The step as docs/PROTOCOL.md has it."""
        return f"{self.verb} “{self.text}”" if self.text else str(self.verb)


def per_write(facts: Facts) -> str:
    """Once for each phase write."""
    return facts.write


def per_question(facts: Facts) -> str:
    """Once for each matter that a person is asked about."""
    return facts.about


def per_failure(facts: Facts) -> str:
    """Once for each failure of the agent's API."""
    return f"{facts.failure.at:.3f}" if facts.failure else ""


class Row(Struct, frozen=True):
    """A line of the matrix. `subject` tells what it reacts to: each subject once.

    `about` is what the question to a person, or the answer to the agent, is kept under.
    `passing`: its plan loses its sense as soon as the row does not apply any more.
    """

    name: str
    phase: str
    fact: str
    when: Callable[[Facts], bool]
    steps: tuple[Step, ...]
    subject: Callable[[Facts], str] = per_write
    counts: Count = Count.NONE
    provisional: bool = False
    about: Callable[[Facts], str] = per_write
    passing: bool = False

    def key(self, facts: Facts) -> str:
        """Identifies one reaction of this row."""
        return f"{self.name}:{self.subject(facts)}"
