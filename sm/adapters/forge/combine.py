"""What all that CI says of one commit comes to. Pure.

A commit has statuses and check runs, of several programs. It has failed if one of them has; else it
is being checked while one of them has no result; it has passed once every one has passed.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from sm.adapters.forge.model import Check, CheckState

PASSED = frozenset({"success", "neutral", "skipped"})
FAILED = frozenset({"failure", "error", "timed_out", "startup_failure", "warning"})
BROKEN = frozenset({"cancelled", "stale", "killed"})
"""CI itself has ended it, so it says nothing of the commit. Any other word means: not yet."""
NAMED = 5
"""How many failed parts are named."""


class Part(Struct, frozen=True):
    """One status or check run: its word in small letters, and since when it has it.

    Parts with the same `key` are runs of the same thing: two workflows may have a job of one name.
    """

    name: str
    word: str
    url: str = ""
    at: float = 0.0
    id: int = 0
    key: str = ""
    has_log: bool = False
    text: str = ""

    @property
    def state(self) -> CheckState:
        """What the word means."""
        if self.word in PASSED:
            return CheckState.SUCCESS
        if self.word in FAILED:
            return CheckState.FAILURE
        return CheckState.BROKEN if self.word in BROKEN else CheckState.PENDING


def combine(parts: Iterable[Part], head: str, *, expected: bool) -> Check:
    """What the parts say of the commit `head`; without any it is PENDING if CI is `expected`."""
    latest = list(_latest(parts).values())
    if not latest:
        return Check(CheckState.PENDING, head) if expected else Check(CheckState.NONE, head)
    states = {part.state for part in latest}
    order = (CheckState.FAILURE, CheckState.PENDING, CheckState.BROKEN, CheckState.SUCCESS)
    state = next(one for one in order if one in states)
    meant = [part for part in latest if part.state is state]
    at = max(part.at for part in meant)
    if state in (CheckState.SUCCESS, CheckState.PENDING):
        return Check(state, head, at=at)
    names = ", ".join(part.name for part in meant[:NAMED])
    more = f" and {len(meant) - NAMED} more" if len(meant) > NAMED else ""
    return Check(state, head, names + more, meant[0].url, at=at)


def find_failed(parts: Iterable[Part]) -> list[Part]:
    """The parts that have failed, or broken where none has failed."""
    latest = list(_latest(parts).values())
    failed = [part for part in latest if part.state is CheckState.FAILURE]
    return failed or [part for part in latest if part.state is CheckState.BROKEN]


def _latest(parts: Iterable[Part]) -> dict[str, Part]:
    """Of each key the last one: a part that was run again has only its new result."""
    found: dict[str, Part] = {}
    for part in sorted(parts, key=lambda part: (part.at, part.id)):
        found[part.key or part.name] = part
    return dict(sorted(found.items()))
