"""Finds what is due at a percentage of an agent's context. Pure: tests can try every order.

An agent is told each thing once in a context, even if the percentage falls and rises again. A
compaction, a rotation and a clear begin a new filling, in which everything may be told again.
"""

from __future__ import annotations

import math
from enum import StrEnum

from msgspec import Struct, structs

FULL = 100.0
AGAIN_S, AGAIN_POINTS = 1800.0, 3.0
"""Time, in seconds, or percentage points after which a cycle that came to nothing begins again."""
LAUNCH_S = 1.0
"""Precision of the time of a launch, in seconds."""


class Notice(StrEnum):
    """Notice to an agent about its context."""

    WARNING = "warning"
    CRITICAL = "critical"


class FillReading(Struct, frozen=True, kw_only=True):
    """Fill of the context of this id, `at` that time (seconds since 1970); None: not known."""

    at: float
    context: str = ""
    percent: float | None = None
    window: int | None = None
    tokens: int | None = None

    @property
    def used(self) -> int | None:
        """Tokens in the context; if the agent does not say, by percentage and window."""
        if self.tokens or self.percent is None or self.window is None:
            return self.tokens
        return round(self.percent * self.window / 100)

    @property
    def shown_percent(self) -> float | None:
        """Percentage that is shown: what an agent tells above 100 is 100."""
        return None if self.percent is None else min(self.percent, FULL)


class Flags(Struct, frozen=True, kw_only=True):
    """Acts that were done in the agent's context of this id, '' if it tells none.

    `reset_at` is when this filling began, seconds since 1970: earlier readings mean nothing. A
    cycle that came to nothing may begin again at the time `again_at`, or at `again_percent`; 0:
    never.
    """

    context: str = ""
    warned: bool = False
    critical: bool = False
    cycled: bool = False
    reset_at: float = 0.0
    again_at: float = 0.0
    again_percent: float = 0.0


class Levels(Struct, frozen=True):
    """Percentages at which something is done; None: never."""

    warning: float | None = None
    critical: float | None = None
    cycle: float | None = None


class FillFacts(Struct, frozen=True, kw_only=True):
    """Facts about a context in one pass. Times are seconds since 1970.

    `context` is the agent's own id of its present one, '' if it tells none; hooks tell that it
    began at `began_at`. `looked_at` is when the pass began: a reading that it took is younger.
    """

    now: float
    looked_at: float
    flags: Flags
    levels: Levels
    context: str = ""
    began_at: float = 0.0
    summed_up_at: float = 0.0
    """Time at which a compaction began the present context; 0: none did."""
    summed_up: int | None = None
    """Number of tokens that the context before that compaction had."""
    has_hooks: bool = True
    launched_at: float = 0.0
    """Time at which an agent without hooks was started."""
    reading: FillReading | None = None
    compactions: tuple[float, ...] = ()
    """Compactions that were not told of yet."""
    retracts: frozenset[Notice] = frozenset()
    """Notices that still wait although the monitor was switched off."""
    is_replaceable: bool = True
    is_rotating: bool = False


class DueAction(Struct, frozen=True):
    """Action that is due now: a notice, or the automated cycle, which goes before any notice."""

    notice: Notice | None = None
    cycle: bool = False

    def __bool__(self) -> bool:
        """Whether anything is due."""
        return self.cycle or self.notice is not None


class ThresholdDecision(Struct, frozen=True, kw_only=True):
    """Actions of a pass, in this order. `flags` are of the present filling, before `due`.

    The hook is to wake the monitor from the percentage `wake_at` on, None: never; and a pass is due
    at the time `again_at` at the latest.
    """

    flags: Flags
    is_new: bool = False
    """A context has begun, so `flags` replace those that were kept."""
    retracts: frozenset[Notice] = frozenset()
    due: DueAction = DueAction()
    percent: float = 0.0
    tokens: int | None = None
    wake_at: int | None = None
    again_at: float = math.inf


NOTHING = DueAction()


def decide(seen: FillFacts) -> ThresholdDecision:
    """Decide what is to be done about how full the context is."""
    flags = _find_present_flags(seen)
    found, reading = NOTHING, _choose(seen, flags)
    if reading is not None and reading.percent is not None:
        found = find_due(reading.percent, seen.levels, flags, seen.now)
    after = mark_done(flags, found)
    rests = seen.is_rotating or not seen.is_replaceable or found.cycle
    return ThresholdDecision(
        flags=flags,
        is_new=flags is not seen.flags,
        retracts=frozenset() if flags is not seen.flags else seen.retracts,
        due=found,
        percent=(reading and reading.percent) or 0.0,
        tokens=reading.used if reading else None,
        # Each update of the status line would wake it while the context is replaced.
        wake_at=None if rests else find_upcoming(seen.levels, after),
        again_at=after.again_at if after.again_at > seen.now else math.inf,
    )


def put_off(found: ThresholdDecision, until: float) -> ThresholdDecision:
    """Return the decision without what is due, which waits for people at the terminal."""
    again_at = min(found.again_at, until)
    # Each update of the status line would wake it meanwhile.
    return structs.replace(found, due=NOTHING, wake_at=None, again_at=again_at)


def _find_present_flags(seen: FillFacts) -> Flags:
    """Return the flags of the present filling; the very same ones if no other has begun."""
    flags = seen.flags
    for at in seen.compactions:
        flags = keep_pause(flags, rearm_flags(flags, seen.context, at, seen.now), seen.now)
    if (began_at := _find_new_beginning(seen, flags)) is not None:
        flags = rearm_flags(flags, seen.context, began_at, seen.now)
    return flags


def _find_new_beginning(seen: FillFacts, flags: Flags) -> float | None:
    """Return when a context without any act began; None if the flags are of the present one.

    The launch alone is known of an agent without hooks, to the second.
    """
    if seen.context and flags.context != seen.context:
        return seen.began_at
    if seen.has_hooks or not flags.reset_at < seen.launched_at <= seen.now:
        return None
    # An agent before it may have said something in the second of the launch.
    known_at = min(seen.launched_at + LAUNCH_S, seen.looked_at)
    return max(known_at, seen.launched_at) if flags.reset_at else seen.launched_at


def rearm_flags(before: Flags, present: str, at: float, now: float) -> Flags:
    """Return the flags of context `present`, which began to fill at that moment.

    The last of several moments counts. One in the future is now: the clock was set back.
    """
    since = max(at, before.reset_at) if before.context == present else at
    return Flags(context=present, reset_at=min(since, now))


def keep_pause(before: Flags, flags: Flags, now: float) -> Flags:
    """Return the flags after a compaction: soon after a cycle in vain it begins no other.

    Until the pause is over the percentage does not count, as it rises and falls with each of them.
    """
    if before.context != flags.context or not now < before.again_at <= now + AGAIN_S:
        return flags
    return structs.replace(
        flags, cycled=True, again_at=before.again_at, again_percent=FULL + AGAIN_POINTS
    )


def _choose(seen: FillFacts, flags: Flags) -> FillReading | None:
    """Choose the reading that may make something due."""
    if seen.is_rotating or not seen.is_replaceable:  # no notice would help
        return None
    return choose_reading(
        seen.reading, flags, seen.context, seen.summed_up_at, seen.now, seen.summed_up
    )


def choose_reading(
    reading: FillReading | None,
    flags: Flags,
    present: str,
    summed_up_at: float,
    now: float,
    summed_up: int | None = None,
) -> FillReading | None:
    """Return the reading, if it says how full the context `present` is in its present filling."""
    if reading is None or reading.percent is None:
        return None
    if reading.context != present or flags.context != present:
        return None
    # Claude Code draws its status line once more with the count of before: 0.2 s behind
    # SessionStart, and 1.7 s before the first answer in the new context (2.1.332).
    if summed_up_at and summed_up and reading.tokens == summed_up:
        return None
    # A moment in the future is none: the clock was set back since.
    began = (flags.reset_at, summed_up_at)
    return None if any(reading.at <= at <= now for at in began) else reading


def is_overtaken(seen: FillFacts) -> bool:
    """Whether a reading of the context after the compaction has come, with a count of its own."""
    reading = seen.reading
    if reading is None or not reading.tokens or not seen.summed_up_at:
        return False
    return reading.at > seen.summed_up_at and reading.tokens != seen.summed_up


def find_due(percent: float, levels: Levels, flags: Flags, now: float) -> DueAction:
    """Find what is due at `percent`.

    After a jump past several thresholds only the highest counts.
    """
    if _is_reached(percent, levels.cycle) and (not flags.cycled or _is_again(percent, flags, now)):
        return DueAction(cycle=True)
    if _is_reached(percent, levels.critical):
        return NOTHING if flags.critical else DueAction(Notice.CRITICAL)
    if _is_reached(percent, levels.warning) and not flags.warned and not flags.critical:
        return DueAction(Notice.WARNING)
    return NOTHING


def _is_again(percent: float, flags: Flags, now: float) -> bool:
    """Whether a cycle that came to nothing may begin again; the clock may have been set back."""
    if not flags.again_at:
        return False
    return percent >= flags.again_percent or not now < flags.again_at <= now + AGAIN_S


def _is_reached(percent: float, level: float | None) -> bool:
    return level is not None and min(percent, FULL) >= min(level, FULL)


def mark_done(flags: Flags, done: DueAction) -> Flags:
    """Return the flags after that was done. The more urgent notice stands for the other one.

    A cycle stands for no notice: if it comes to nothing, the agent has to know.
    """
    return structs.replace(
        flags,
        warned=flags.warned or done.notice is not None,
        critical=flags.critical or done.notice is Notice.CRITICAL,
        cycled=flags.cycled or done.cycle,
        again_at=0.0 if done.cycle else flags.again_at,
        again_percent=0.0 if done.cycle else flags.again_percent,
    )


def mark_untold(flags: Flags, notice: Notice) -> Flags:
    """Return the flags after a notice was taken back before the agent got it."""
    if notice is Notice.CRITICAL:
        return structs.replace(flags, critical=False)
    return structs.replace(flags, warned=False)


def mark_in_vain(flags: Flags, percent: float, now: float) -> Flags:
    """Return the flags after a cycle that came to nothing at `percent`."""
    more = min(percent, FULL) + AGAIN_POINTS
    return structs.replace(flags, cycled=True, again_at=now + AGAIN_S, again_percent=more)


def list_ahead(levels: Levels, flags: Flags) -> list[tuple[str, float]]:
    """List what is still to come in this context, and at which percentage, the nearest first."""
    found = [
        (what, level)
        for what, level, done in (
            ("warning", levels.warning, flags.warned or flags.critical),
            ("critical", levels.critical, flags.critical),
            ("cycle", _find_next_cycle(levels, flags), flags.cycled and not flags.again_at),
        )
        if level is not None and not done
    ]
    return sorted(found, key=lambda one: one[1])


def _find_next_cycle(levels: Levels, flags: Flags) -> float | None:
    """Find the percentage of the next cycle; None if it waits for a time only."""
    if levels.cycle is None or not flags.cycled:
        return levels.cycle
    return max(levels.cycle, flags.again_percent) if flags.again_percent <= FULL else None


def find_upcoming(levels: Levels, flags: Flags) -> int | None:
    """Find the next percentage at which something is due, rounded up; None if there is none."""
    found = list_ahead(levels, flags)
    return math.ceil(found[0][1]) if found else None


def write_notice(notice: Notice, percent: float, tokens: int | None) -> str:
    """Write the notice for the agent."""
    at = f"[sm context] Context at {min(percent, FULL):g}%"
    if notice is Notice.CRITICAL:
        return (
            f"{at} — critically high. Write your handoff doc NOW and run `sm handoff <path>`. "
            "Compaction is imminent."
        )
    used = "" if tokens is None else f" ({tokens:,} tokens)"
    return f"{at}{used}. Consider writing a handoff doc and running `sm handoff <path>`."


def write_compaction(name: str) -> str:
    """Write what the parent of session `name` is told after a compaction."""
    return f"[sm context] Compaction fired for {name}. Context was lost."
