"""The mark of a session that may spend nothing now, which deliveries and hooks look for.

Passes set it and take it away, by what the meters say. While it is there nothing is typed to the
agent but the messages that it names, and no time counts against the agent.
"""

from __future__ import annotations

import os
import time

from msgspec import Struct, structs

from sm.base.errors import StateError
from sm.store.files import discard, read_json, write_json
from sm.store.paths import SessionDir


class Brake(Struct, frozen=True):
    """Begin of the brake, how far the limit is used up, and the ids of the messages that pass.

    `stop` is the id of the interruption that was begun last, and `stops` counts them. The limit is
    at that stage since `staged_at`.
    """

    since: float
    stage: str = ""
    passing: tuple[str, ...] = ()
    stop: str = ""
    stops: int = 0
    staged_at: float = 0.0


def is_set(directory: SessionDir) -> bool:
    """Say whether the session may spend nothing; this costs as much as a look for one file."""
    return os.path.lexists(directory.braked)


def read(directory: SessionDir) -> Brake | None:
    """Return the mark; None without one. A damaged mark counts, and lets nothing pass."""
    try:
        return read_json(directory.braked, Brake)
    except StateError:
        return Brake(time.time())


def put_on(directory: SessionDir, stage: str) -> None:
    """Let nothing be typed from now on."""
    known, now = read(directory), time.time()
    if known is None:
        write_json(directory.braked, Brake(now, stage, staged_at=now))
    elif known.stage != stage or known.staged_at > now:  # the clock was set back
        write_json(directory.braked, structs.replace(known, stage=stage, staged_at=now))


def find_stage_time(directory: SessionDir) -> float:
    """Return since when the limit is at its stage, in seconds since 1970; 0 for no mark."""
    known = read(directory)
    return (known.staged_at or known.since) if known else 0.0


def let_pass(directory: SessionDir, ident: str) -> None:
    """Let this one message be typed, if the mark is there."""
    known = read(directory)
    if known and ident not in known.passing:
        write_json(directory.braked, structs.replace(known, passing=(*known.passing, ident)))


def note_stop(directory: SessionDir, ident: str) -> None:
    """Note an interruption before it begins: whoever dies behind that is known to have begun it."""
    known = read(directory)
    if known and known.stop != ident:
        now = structs.replace(known, stop=ident, stops=known.stops + 1)
        write_json(directory.braked, now)


def passes(directory: SessionDir, ident: str) -> bool:
    """Say whether the message may be typed, as far as the brake is concerned."""
    known = read(directory)
    return known is None or ident in known.passing


def release(directory: SessionDir) -> None:
    """Let the session go on: what it waits for has its whole time again, as after a pause."""
    if is_set(directory):
        write_json(directory.resumed, time.time())
        discard(directory.braked)
