"""Views of a session elsewhere: its screen, messages and story, by its node's `sm`.

What a node says is foreign: it is read by its shape, and whoever shows it clears it as any text.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

import msgspec
from msgspec import structs

from sm.base.decoding import decode
from sm.base.errors import SmError
from sm.issues import reaching
from sm.issues.reaching import Elsewhere
from sm.issues.runners import load_runner
from sm.messages.send import QueuedMessage
from sm.views.contexts import Gauge
from sm.views.trace import Story

PATIENCE_S = 5.0
"""Time that somebody who only looks waits for a node, in seconds."""

T = TypeVar("T")


def read_screen(there: Elsewhere, count: int) -> str:
    """Return the last lines of its screen; without a screen, those of its log.

    Raises:
        SmError: the node does not answer, or refuses it. The other functions raise it, too.

    """
    return _ask(there, "tail", "--lines", str(count)).rstrip("\n")


def read_messages(there: Elsewhere) -> list[QueuedMessage]:
    """Return its messages, as `sm queue` has them."""
    return _decode(there, _ask(there, "queue", "--json"), list[QueuedMessage])


def read_story(there: Elsewhere) -> Story:
    """Return its story, as `sm trace` tells it."""
    return _decode(there, _ask(there, "trace", "--json"), Story)


def read_past_story(ours: Story, there: Elsewhere) -> Story:
    """Return the story of a session that has ended elsewhere: what its node tells, among ours.

    Raises:
        SmError: as for `read_screen`.

    """
    theirs = read_story(there)
    entries = sorted((*ours.entries, *theirs.entries), key=lambda entry: entry.at)
    timed = (
        structs.replace(entry, elapsed_s=entry.at - before.at)
        for before, entry in pairwise([entries[0], *entries])
    )
    log = f"{there.placement.host}:{theirs.log}" if theirs.log else ""
    return structs.replace(theirs, entries=tuple(timed), log=log)


def read_past_log(there: Elsewhere, count: int, *, raw: bool) -> str:
    """Return the last lines in the terminal of a session that has ended elsewhere.

    Raises:
        SmError: as for `read_screen`.

    """
    return _ask(there, "logs", "--lines", str(count), *["--raw"] * raw)


def read_gauge(there: Elsewhere) -> Gauge:
    """Return how full its context is, as `sm context` has it."""
    return _decode(there, _ask(there, "context", "--json"), Gauge)


def _ask(there: Elsewhere, verb: str, *options: str) -> str:
    runner, argv = load_runner(there.placement.runner), (verb, there.placement.session, *options)
    answer = reaching.call(there, runner, argv, patience_s=PATIENCE_S)
    if answer.code:
        raise reaching.explain_failure(answer)
    return answer.stdout


def _decode(there: Elsewhere, said: str, shape: type[T]) -> T:
    try:
        return decode(said, shape)
    except (msgspec.DecodeError, RecursionError) as error:
        host = there.placement.host
        raise SmError(f"what '{host}' says is not understood: is it the same version?") from error
