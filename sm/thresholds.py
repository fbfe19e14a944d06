"""What is due at a percentage of an agent's context: pure, so that every order can be tried.

Whatever was told once in a context stays told, however the percentage falls: after a compaction
it may still be above the threshold, and what compaction, rotation and clear do is known otherwise.
"""

from __future__ import annotations

import math
from enum import StrEnum

from msgspec import Struct, structs

FULL = 100.0


class Notice(StrEnum):
    """What an agent is told of its context."""

    WARNING = "warning"
    CRITICAL = "critical"


class Flags(Struct, frozen=True, kw_only=True):
    """What was done in the agent's context of this id, '' where it tells none.

    `reset_at` is when its filling up began, seconds since 1970: earlier readings mean nothing.
    """

    context: str = ""
    warned: bool = False
    critical: bool = False
    cycled: bool = False
    reset_at: float = 0.0


class Levels(Struct, frozen=True):
    """The percentages at which something is done; None: never."""

    warning: float | None = None
    critical: float | None = None
    cycle: float | None = None


class Due(Struct, frozen=True):
    """What is to be done now: a notice, or the automated cycle, which goes before any."""

    notice: Notice | None = None
    cycle: bool = False

    def __bool__(self) -> bool:
        """Whether anything is."""
        return self.cycle or self.notice is not None


NOTHING = Due()


def due(percent: float, levels: Levels, flags: Flags) -> Due:
    """What is due at `percent`; a jump past several thresholds is answered for the highest."""
    if _reached(percent, levels.cycle) and not flags.cycled:
        return Due(cycle=True)
    if _reached(percent, levels.critical):
        return NOTHING if flags.critical else Due(Notice.CRITICAL)
    if _reached(percent, levels.warning) and not flags.warned and not flags.critical:
        return Due(Notice.WARNING)
    return NOTHING


def _reached(percent: float, level: float | None) -> bool:
    return level is not None and min(percent, FULL) >= min(level, FULL)


def marked(flags: Flags, done: Due) -> Flags:
    """The flags after that was done. What is more urgent stands for what is less.

    But a cycle stands for no notice: where nothing comes of it, the agent has to know.
    """
    return structs.replace(
        flags,
        warned=flags.warned or done.notice is not None,
        critical=flags.critical or done.notice is Notice.CRITICAL,
        cycled=flags.cycled or done.cycle,
    )


def ahead(levels: Levels, flags: Flags) -> list[tuple[str, float]]:
    """What is still to be done in this context and at which percentage, the nearest first."""
    found = [
        (what, level)
        for what, level, done in (
            ("warning", levels.warning, flags.warned or flags.critical),
            ("critical", levels.critical, flags.critical),
            ("cycle", levels.cycle, flags.cycled),
        )
        if level is not None and not done
    ]
    return sorted(found, key=lambda one: one[1])


def upcoming(levels: Levels, flags: Flags) -> int | None:
    """The next percentage at which something is to be done, rounded up; None: there is none."""
    found = ahead(levels, flags)
    return math.ceil(found[0][1]) if found else None


def text(notice: Notice, percent: float, tokens: int | None) -> str:
    """What the agent is told."""
    at = f"[sm context] Context at {min(percent, FULL):g}%"
    if notice is Notice.CRITICAL:
        return (
            f"{at} — critically high. Write your handoff doc NOW and run `sm handoff <path>`. "
            "Compaction is imminent."
        )
    used = "" if tokens is None else f" ({tokens:,} tokens)"
    return f"{at}{used}. Consider writing a handoff doc and running `sm handoff <path>`."


def compacted(name: str) -> str:
    """What the parent is told when the context of session `name` was summed up."""
    return f"[sm context] Compaction fired for {name}. Context was lost."
