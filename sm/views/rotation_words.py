"""Replacement of a context, step by step, in words."""

from __future__ import annotations

import re
from collections.abc import Callable

from sm.store.events import Rotation, RotationStep

ASKED = {
    "ask1": "asked for a handoff document",
    "ask": "asked for a handoff document again",
    "sections": "asked for what the document lacks",
    "resume1": "the new context is to be told to resume",
    "resume": "the new context is to be told again to resume",
    "confirm": "asked whether it goes on",
}
"""Words for the messages of a rotation, by key; some keys are followed by a number."""

NUMBERED = re.compile(r"(ask|resume|confirm)\d+")

CLEARED = {
    "confirmed": "cleared",
    "taken": "cleared, which its next prompt will confirm",
    "unconfirmed": "the clear was not confirmed",
}
"""Words for what came of each try to clear the context."""


def _asked(event: Rotation) -> str:
    numbered = NUMBERED.fullmatch(event.message)
    return ASKED.get(event.message) or (ASKED[numbered[1]] if numbered else event.message)


def _begun(event: Rotation) -> str:
    if event.cause == LEAVE:
        return "its machine's time is over soon: a handoff document is asked for"
    at = "" if event.percent is None else f" at {event.percent:.0f}%"
    return f"cycle begins{at} ({event.cause})"


def _finished(event: Rotation) -> str:
    took = f"finished, after {event.took_s or 0:.1f} s with '{event.document}'"
    if event.task is None:
        return took
    return f"{took}: it goes on with {event.task}" if event.task else f"{took}: {NO_TASK}"


NO_TASK = "it has not named its task"
LEAVE = "leave"
"""Cause of a rotation that clears nothing."""

ROTATION: dict[RotationStep, Callable[[Rotation], str]] = {
    RotationStep.BEGUN: _begun,
    RotationStep.HANDOFF: lambda event: f"handoff with {event.document}",
    RotationStep.DOCUMENT: lambda event: f"its document is {event.document}",
    RotationStep.ASKED: lambda event: f"{event.message}: {event.text}",
    RotationStep.INTERRUPTED: lambda _: "turn interrupted",
    RotationStep.CLEARED: lambda event: f"clear {event.attempt}: {event.result}",
    RotationStep.BLOCKED: lambda event: f"not cleared yet: {event.reason}",
    RotationStep.RELAUNCHED: lambda _: "its agent is started anew: the clear had no effect",
    RotationStep.FINISHED: _finished,
    RotationStep.GIVEN_UP: lambda event: f"given up: {event.reason}",
}


def describe_rotation(event: Rotation) -> str:
    """Say what happened, as `sm trace --json` has it."""
    return ROTATION[event.step](event)


def tell_rotation(event: Rotation) -> str:
    """Tell the event in a sentence."""
    if event.step is RotationStep.ASKED:
        return f"context: {_asked(event)}: {event.text}"
    if event.step is RotationStep.CLEARED:
        again = f" (try {event.attempt})" if event.attempt > 1 else ""
        return f"context: {CLEARED.get(event.result, event.result)}{again}"
    return f"context: {describe_rotation(event)}"


def tell_rotation_shortly(event: Rotation) -> str:
    """Tell the event for a column of a table."""
    if event.step is RotationStep.ASKED:
        return f"context: {_asked(event)}"
    return tell_rotation(event).partition(",")[0]
