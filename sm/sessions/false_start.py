"""A start of an agent that has ended at once, and whether the machine is at fault. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

AT_ONCE_S = 30.0
"""Seconds after its start within which an agent that ends, and has called no hook, never worked."""
WINDOW_S = 900.0
"""Seconds for which a false start counts: another try is made several times within them."""
PAUSE_S = 300.0
"""The longest pause before another try."""
RESUMED = 5
"""Number of tries to resume the conversation, which may be what the client cannot do."""
NO_PROGRAM = re.compile(
    r"cannot start '[^'\n]*': no such program"
    r"|^(?:\S*/)?env: .*: \S"
    r"|^sandbox '[^'\n]*' cannot be had"
)
"""The words of `lib/launch` and of env(1) where the agent's program cannot be run: it is missing or
just being replaced, or its interpreter is; and those of `sandboxes.py`, where its sandbox cannot be
had. No issue has caused that."""
VARYING = re.compile(r"[0-9a-f]{6,}|[0-9]+")
"""Differences between the same words of two processes: numbers, times, ids."""


class FalseStart(Struct, frozen=True):
    """A start at `at` (seconds since 1970) that has ended at once, with the agent's last words.

    `tries` counts those of the session that have ended so, one after another. `resume` is the
    agent's own session that it was to resume, '' for none.
    """

    at: float
    reason: str
    tries: int = 1
    resume: str = ""

    @property
    def kind(self) -> str:
        """The part of the reason that others that have ended for the same reason share."""
        return VARYING.sub("#", self.reason)

    @property
    def lacks_program(self) -> bool:
        """Whether the start failed because there was no program to run."""
        return bool(NO_PROGRAM.search(self.reason))

    @property
    def resumable(self) -> str:
        """The agent's own session that the next start resumes, '' for none."""
        return self.resume if self.tries < RESUMED or self.lacks_program else ""

    def find_next(self, pause_s: float) -> float:
        """Return when the next try is due: each pause is twice as long as the one before."""
        return self.at + min(pause_s * 2.0 ** (self.tries - 1), PAUSE_S)


class StartFault(Struct, frozen=True):
    """Reason why agents end as they start, by the last words of one of them, and their sessions."""

    reason: str
    sessions: tuple[str, ...]


def judge(starts: Mapping[str, FalseStart], now: float) -> list[StartFault]:
    """List why agents end as they start, that of most sessions first.

    What one alone says may be its issue's fault, unless there is no program to run.
    """
    alike: dict[str, dict[str, FalseStart]] = {}
    for name, one in starts.items():
        if 0 <= now - one.at < WINDOW_S:
            alike.setdefault(one.kind, {})[name] = one
    return [
        StartFault(next(iter(found.values())).reason, tuple(sorted(found)))
        for found in sorted(alike.values(), key=len, reverse=True)
        if len(found) > 1 or any(one.lacks_program for one in found.values())
    ]
