"""How full an agent's context is, as its status line has last said, and what came of it.

A reading is the line `usage`, written by the status line's hook or by `note`. It counts for the
context that it is of and since that began to fill: whatever is older, or comes while the context
is being summed up, says nothing of what is in it now.
"""

from __future__ import annotations

import hashlib
import math
import time

from msgspec import Struct

from sm.foreign import read_number, read_seconds
from sm.session import agentstate, contexts, queue
from sm.store.damage import read_rebuildable
from sm.store.files import discard, read_harmless, write_atomic, write_json
from sm.store.paths import SessionDir
from sm.thresholds import Flags, Notice

WORDS, LIMITS, TOKENS = 8, 4, 8
"""Words of a line without tokens, of the usage limits in it; which one the tokens are."""
LINE_LIMIT = 400
WIDTH = 159
"""A line is as long as the hook's, which writes over what is there."""
ANY = 0
"""The threshold where nobody has looked at a reading yet: whichever comes is of interest."""


class Reading(Struct, frozen=True, kw_only=True):
    """A look at the context of this id. `at` in seconds since 1970, None for what is not known."""

    at: float
    context: str = ""
    percent: float | None = None
    window: int | None = None
    tokens: int | None = None

    @property
    def used(self) -> int | None:
        """The tokens in the context; where the agent does not say, by percentage and window."""
        if self.tokens or self.percent is None or self.window is None:
            return self.tokens
        return round(self.percent * self.window / 100)


def read(directory: SessionDir) -> Reading | None:
    """The last reading, of whichever context; None where there is none, or the line is damaged."""
    words = _words(directory)
    if len(words) < WORDS or (at := read_seconds(words[0])) is None:
        return None
    tokens = read_seconds(words[TOKENS]) if len(words) > TOKENS else None
    window = read_seconds(words[3])
    return Reading(
        at=at,
        context="" if words[1] == "-" else words[1],
        percent=read_seconds(words[2]),
        window=None if window is None else int(window),
        tokens=None if tokens is None else int(tokens),
    )


def _words(directory: SessionDir) -> list[str]:
    line = read_harmless(directory.usage, LINE_LIMIT)
    return line.decode("utf-8", "replace").partition("\n")[0].split()


def note(directory: SessionDir, reading: Reading) -> None:
    """Write the reading as the hook does, for an agent that has no such hook.

    One that comes while the context is being summed up is passed over. The usage limits that are
    known stay.
    """
    if is_compacting(directory):
        return
    limits = _words(directory)[WORDS - LIMITS : WORDS] or ["-"] * LIMITS
    words = [f"{reading.at:.6f}", reading.context or "-", _word(reading.percent)]
    words += [_word(reading.window), *limits, _word(reading.tokens)]
    write_atomic(directory.usage, f"{' '.join(words):<{WIDTH}}\n")


def _word(number: float | None) -> str:
    return "-" if number is None or not math.isfinite(number) else f"{number:.15g}"


def is_compacting(directory: SessionDir) -> bool:
    """Whether the context is just being summed up."""
    return bool(read_harmless(directory.compacting, 1))


def current(directory: SessionDir, flags: Flags) -> Reading | None:
    """The reading, if it says how full the present context is."""
    reading = read(directory)
    if reading is None or reading.percent is None or is_compacting(directory):
        return None
    present = agentstate.read(directory).context
    if reading.context != present or flags.context != present:
        return None
    # A moment in the future is none: the clock was set back since.
    begins = (flags.reset_at, _summed_up_at(directory, present))
    return None if any(reading.at <= at <= time.time() for at in begins) else reading


def _summed_up_at(directory: SessionDir, present: str) -> float:
    """When the present context was begun by a compaction, 0 where it was not.

    A compaction begins a while before: what is said meanwhile is of the context before.
    """
    known = contexts.read(directory)
    return known.at if known.begun == "compact" and known.id == present else 0.0


def flags(directory: SessionDir) -> Flags:
    """What was done about how full the context is; nothing where that is lost."""
    return read_rebuildable(directory.context_flags, Flags) or Flags()


def save_flags(directory: SessionDir, value: Flags) -> None:
    """Keep what was done. The caller holds the delivery lock."""
    write_json(directory.context_flags, value)


def rearm(directory: SessionDir, at: float) -> None:
    """Begin anew: the context was emptied, or summed up, at that moment (seconds since 1970).

    What it was told of the one before and has not heard yet, it never hears. The next reading,
    whatever it says, is of interest. The caller holds the delivery lock.
    """
    before = flags(directory)
    for notice in Notice:
        queue.withdraw(directory, ident(directory, before, notice))
    context = agentstate.read(directory).context
    # Of several that were noticed late, the last one counts.
    since = max(at, before.reset_at) if before.context == context else at
    save_flags(directory, Flags(context=context, reset_at=min(since, time.time())))
    point(directory, ANY)


def point(directory: SessionDir, percentage: int | None) -> None:
    """Have the status line's hook call from that percentage on; None: never."""
    if percentage is None:
        discard(directory.threshold)
    elif pointed(directory) != percentage:
        write_atomic(directory.threshold, f"{percentage}\n")


def pointed(directory: SessionDir) -> int | None:
    """The percentage from which on the status line's hook calls; None: it never does."""
    return read_number(read_harmless(directory.threshold, 20).decode("ascii", "replace").strip())


def began_at(directory: SessionDir) -> float:
    """When the present context began, seconds since 1970; now, where nobody has told."""
    known = contexts.read(directory)
    is_present = known.id == agentstate.read(directory).context
    return known.at if is_present and known.at else time.time()


def ident(directory: SessionDir, value: Flags, notice: Notice) -> str:
    """The id of that notice in that filling of the context: whoever finds it due, the same."""
    event = f"{directory.path.name}:{value.context}:{value.reset_at:.6f}:{notice}"
    return hashlib.sha256(event.encode()).hexdigest()[:16]
