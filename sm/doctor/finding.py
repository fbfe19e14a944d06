"""What a check found: one line of `sm doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from msgspec import Struct

from sm.errors import SmError


class Level(StrEnum):
    """Whether it is as it should be, worth a look, or in the way of any work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(Struct, frozen=True):
    """`what` was found in `where` (a project, or the machine), and what to do about it."""

    level: Level
    what: str
    advice: str = ""
    where: str = "machine"


def ok(what: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, what)


def warn(what: str, advice: str) -> Finding:
    """Work goes on, and somebody should look."""
    return Finding(Level.WARN, what, advice)


def fail(what: str, advice: str = "") -> Finding:
    """Nothing works before this is mended."""
    return Finding(Level.FAIL, what, advice)


def guarded(check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """What `check` finds; where it cannot even look, that is what it found."""
    try:
        yield from check()
    except SmError as error:
        yield fail(error.message)
