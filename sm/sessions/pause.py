"""Pauses of a person: nothing is taken up or typed meanwhile, and no time counts against an agent.

A person's decisions are in one file for each state root, in the user's data folder, because a
restart of the machine must not take them back. Beside it each paused session has a mark in its own
directory, at which passes, deliveries and hooks look; `sm.messages.suspension` keeps both in step.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from sm.base.clock import format_time
from sm.base.errors import StateError, TemporaryError
from sm.store import lock
from sm.store.files import discard, ensure_private_dir, find_mtime, read_json, write_json
from sm.store.paths import Root, SessionDir

PASS_S = 24 * 3600.0
"""Seconds between two passes over a paused session, unless something wakes it."""


class Extent(StrEnum):
    """Extent of a pause."""

    EVERYTHING = "everything"
    PROJECT = "project"
    SESSION = "session"


class PauseTarget(Struct, frozen=True, kw_only=True):
    """Target of a pause: everything, a project or a session.

    `name` is that of the project, or the id of the session; `called` is what people call it, '' for
    everything.
    """

    extent: Extent
    name: str = ""
    called: str = ""

    def is_same(self, other: PauseTarget) -> bool:
        """Say whether both are the same part, whatever else is known of them."""
        return (self.extent, self.name) == (other.extent, other.name)

    def covers(self, project: str, session: str) -> bool:
        """Say whether it pauses that session of that project; '' is none of either."""
        match self.extent:
            case Extent.EVERYTHING:
                return True
            case Extent.PROJECT:
                return self.name == project
        return self.name == session

    @property
    def words(self) -> str:
        """The part's name for people."""
        return self.called or "everything"


EVERYTHING = PauseTarget(extent=Extent.EVERYTHING)


class Pause(PauseTarget, frozen=True, kw_only=True):
    """One decision of a person: what is paused, since when, by whom.

    `since` is in seconds since 1970. `damage` says why it is not known what is paused.
    """

    since: float = 0.0
    by: str = ""
    reason: str = ""
    damage: str = ""

    @property
    def command(self) -> str:
        """The command that a person types to go on."""
        return f"sm resume {self.called}".rstrip()

    @property
    def subject(self) -> str:
        """The paused part in words."""
        return "all" if self.extent is Extent.EVERYTHING else self.called

    @property
    def sentence(self) -> str:
        """The pause in one sentence: its part, its begin, and how to go on."""
        if self.damage:
            return f"all is paused, as nobody knows what was: {self.damage}: {self.command}"
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.subject} is {self.since_when}{why}: {self.command}"

    @property
    def since_when(self) -> str:
        """Begin of the pause, and who has paused."""
        return f"paused since {format_time(self.since, time.time())} by {self.by}"


class Pauses(Struct, frozen=True):
    """All pauses of one state root, the widest first."""

    root: str
    pauses: tuple[Pause, ...] = ()

    def find(self, project: str, session: str = "") -> Pause | None:
        """Return the widest pause of that session, or of the project as a whole; None for none."""
        return next((one for one in self.pauses if one.covers(project, session)), None)

    def find_exactly(self, part: PauseTarget) -> Pause | None:
        """Return the decision about just that part; None if there is none."""
        return next((one for one in self.pauses if one.is_same(part)), None)


class PauseMark(Struct, frozen=True):
    """Mark of a paused session. `interrupted`: its turn was stopped for that."""

    since: float
    interrupted: bool = False


# The record


def locate(root: Root) -> Path:
    """Return where the record is.

    Raises:
        StateError: the user has no home.

    """
    from sm.store import data_folder  # which a pass does without

    return data_folder.locate("paused", root.path).with_suffix(".json")


def read(root: Root) -> Pauses:
    """Return all pauses. If they cannot be read, all is paused: somebody has paused something.

    A start that nobody wants costs more than one that comes late, and everything that shows what
    is paused says what is wrong.
    """
    with contextlib.suppress(StateError):
        path = locate(root)
        try:
            found = read_json(path, Pauses)
        except StateError as error:
            since = find_mtime(path) or time.time()
            damaged = Pause(extent=Extent.EVERYTHING, since=since, damage=error.message)
            return Pauses(str(root.path), (damaged,))
        if found:
            return found
    return Pauses(str(root.path))


def save(root: Root, pauses: tuple[Pause, ...]) -> None:
    """Keep what is paused; the caller holds the record's lock.

    The file stays when nothing is paused any more: its new time tells dev-poll that there is work.

    Raises:
        StateError: it cannot be written.

    """
    order = list(Extent)
    widest_first = sorted(pauses, key=lambda one: (order.index(one.extent), one.since))
    write_json(locate(root), Pauses(str(root.path), tuple(widest_first)), durable=True)


def locate_lock(root: Root) -> Path:
    """Return the lock file that a process holds while it changes the record; its folder is made.

    Raises:
        StateError: the folder cannot be made, or is not ours.

    """
    path = locate(root)
    ensure_private_dir(path.parent, parents=True)
    return path.with_suffix(".lock")


def forget(root: Root, session: str) -> None:
    """Forget the pause of a session that is over: its issue may be worked on again some day."""
    with contextlib.suppress(TemporaryError), lock.hold(locate_lock(root)):
        found, gone = read(root), PauseTarget(extent=Extent.SESSION, name=session)
        rest = tuple(one for one in found.pauses if not one.is_same(gone))
        if rest != found.pauses:
            save(root, rest)


def find(root: Root, project: str, session: str = "") -> Pause | None:
    """Return the pause of that session, or of the project as a whole; None for none."""
    return read(root).find(project, session)


def name_host() -> str:
    """Return the name of this machine, as people see it beside a user's."""
    return os.uname().nodename


# The marks


def is_paused(directory: SessionDir) -> bool:
    """Say whether the session is paused; this costs as much as a look for one file."""
    return os.path.lexists(directory.paused)


def list_marks(root: Root) -> Iterator[Path]:
    """Yield the marks of all paused sessions."""
    return root.sessions.glob("*/paused")


def read_mark(directory: SessionDir) -> PauseMark | None:
    """Return the session's mark; None without one. A damaged mark counts as well."""
    try:
        return read_json(directory.paused, PauseMark)
    except StateError:
        return PauseMark(find_mtime(directory.paused) or time.time())


def set_mark(directory: SessionDir, mark: PauseMark) -> None:
    """Mark the session as paused."""
    write_json(directory.paused, mark)


def remove_mark(directory: SessionDir) -> None:
    """Note when the session goes on, then remove its mark."""
    if is_paused(directory):
        write_json(directory.resumed, time.time())
        discard(directory.paused)


def read_resumed_at(directory: SessionDir) -> float:
    """Return when the session went on last, seconds since 1970; 0 if it was never paused."""
    try:
        return min(read_json(directory.resumed, float) or 0.0, time.time())
    except StateError:
        return 0.0
