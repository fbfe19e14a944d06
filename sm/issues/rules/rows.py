"""The parts of a row of the reaction matrix."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from sm.issues.rules.facts import Facts
from sm.sessions.hands import Deed
from sm.sessions.history import Count, Verb


class Step(Struct, frozen=True):
    """One action; `text` names its message (see prompts)."""

    verb: Verb
    text: str = ""

    def __str__(self) -> str:
        """The step as docs/PROTOCOL.md has it."""
        return f"{self.verb} “{self.text}”" if self.text else str(self.verb)


def key_per_write(facts: Facts) -> str:
    """Return a key for a reaction once for each phase write."""
    return facts.write


def key_per_question(facts: Facts) -> str:
    """Return a key for a reaction once for each matter that a person is asked about."""
    return facts.about


def key_per_failure(facts: Facts) -> str:
    """Return a key for a reaction once for each failure of the agent's API."""
    return f"{facts.failure.at:.3f}" if facts.failure else ""


class Row(Struct, frozen=True):
    """A row of the matrix. It reacts to its `subject`, and to each subject once.

    `about` is the key of the question to a person, or of the answer to the agent. `passing`: its
    plan is pointless as soon as the row no longer applies. `deed` is what it does to a session that
    people may be at: it waits for them. `beside`: it is done while such a row waits.
    """

    name: str
    phase: str
    fact: str
    when: Callable[[Facts], bool]
    steps: tuple[Step, ...]
    subject: Callable[[Facts], str] = key_per_write
    counts: Count = Count.NONE
    provisional: bool = False
    about: Callable[[Facts], str] = key_per_write
    passing: bool = False
    deed: Callable[[Facts], Deed] | None = None
    beside: bool = False

    def key(self, facts: Facts) -> str:
        """Return the key of one reaction of this row."""
        return f"{self.name}:{self.subject(facts)}"
