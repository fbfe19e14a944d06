"""Checks of `sm doctor`, and what they find: a line of its output each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from sm.base.errors import SmError

if TYPE_CHECKING:
    from sm.config.schema import Config
    from sm.sessions.project import Project


class Level(StrEnum):
    """Level of a finding: all is well, a person should look, or nothing works."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Fix(Struct, frozen=True):
    """Remedy that is safe for a finding, and is applied by `sm doctor --fix` alone.

    `doing` and `done` say it, such as “remove …” and “removed …”. `make` does it, and returns why
    it did not, '' if it is done. It may be called long after the finding, so it looks again first.
    `by_hand` is what a person can do if it did not. `foresee` returns, without a change, why `make`
    would not do it, as far as that can be known.
    """

    doing: str
    done: str
    make: Callable[[], str]
    by_hand: str = ""
    foresee: Callable[[], str] = str


class Finding(Struct, frozen=True):
    """Result of a check: `what`, in `where`, and what to do about it.

    `where` is a project, or the machine.
    """

    level: Level
    what: str
    advice: str = ""
    where: str = "machine"
    fix: Fix | None = None


def ok(what: str) -> Finding:
    """Return the finding that all is well."""
    return Finding(Level.OK, what)


def warn(what: str, advice: str, fix: Fix | None = None) -> Finding:
    """Return the finding that work goes on, and a person should look."""
    return Finding(Level.WARN, what, advice, fix=fix)


def fail(what: str, advice: str = "", fix: Fix | None = None) -> Finding:
    """Return the finding that nothing works before this is mended."""
    return Finding(Level.FAIL, what, advice, fix=fix)


def guard(check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield what `check` finds. If the check itself fails, that is the finding."""
    try:
        yield from check()
    except SmError as error:
        yield fail(error.message)


class DoctorCheck(NamedTuple):
    """Checks of a plugin: of the machine once, of each project, or both. They change nothing."""

    machine: Callable[[Config], Iterable[Finding]] | None = None
    project: Callable[[Project], Iterable[Finding]] | None = None
