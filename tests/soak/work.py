"""What there is to do: issues, each with a need of its own, and the CI that looks at the work."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NAME = "soak"
CI = """\
echo 'step: parts'
sleep 0.3
! grep -rn broken parts"""


class Need(StrEnum):
    """What the work on an issue needs on its way. Two beside each other edit one file."""

    NOTHING = "nothing"
    MENDING = "mending"  # CI fails at first
    CHANGES = "changes"  # the reviewer wants one
    ANSWER = "answer"  # a person has to say something
    ROOM = "room"  # in a file that another one edits at the same time


NEEDS = (*Need, *reversed(Need))


@dataclass(frozen=True)
class Part:
    """An issue to be filed `at_s` seconds after the beginning."""

    title: str
    need: Need
    at_s: float


def parts(count: int, duration_s: float) -> tuple[Part, ...]:
    """So many issues, filed one after another for as long as there are faults.

    The title tells the agent, whose only memory is git, what is needed.
    """
    needs = [NEEDS[n % len(NEEDS)] for n in range(count)]
    return tuple(
        Part(f"Add part {n} (needs: {need})", need, (n - 1) * duration_s / count)
        for n, need in enumerate(needs, 1)
    )


def file_of(issue: int) -> str:
    """What is in the primary branch once the issue is merged."""
    return f"parts/{issue}.txt"
