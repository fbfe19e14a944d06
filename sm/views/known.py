"""Session as its files have it now: the source of every table, `--json` and HTTP answer.

A file is read when it is first needed, and then once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from sm.base.errors import SmError, StateError, UsageError
from sm.context import progress, usage
from sm.context.flags import read_flags
from sm.context.thresholds import FULL, Flags, Reading
from sm.messages import queue
from sm.messages.queue import Place
from sm.sessions import monitors, registry
from sm.sessions.activity import Evidence, Proof, Standing, look
from sm.sessions.session import AnySession
from sm.store.paths import Root
from sm.views.states import ShownState

T = TypeVar("T")


class Known:
    """Facts about a session at the moment `now`, in seconds since 1970."""

    def __init__(self, session: AnySession, now: float | None = None) -> None:
        self.session = session
        self.dir = session.dir
        self.now = time.time() if now is None else now
        self.name = session.address
        self.project = session.project_name
        self.issue = session.issue

    @property
    def age_s(self) -> float:
        """Age of the session's record, in seconds."""
        return max(0.0, self.now - self.session.record.created_at)

    @cached_property
    def standing(self) -> Standing:
        """State of its agent, since when, and what proves it."""
        return look(self.session)

    @property
    def state(self) -> ShownState:
        """State that is shown of its agent."""
        return ShownState(self.standing.state)

    @property
    def state_age_s(self) -> float:
        """Time in that state, in seconds; 0 if unknown."""
        since = self.standing.since
        return max(0.0, self.now - since) if since else 0.0

    @property
    def waiting(self) -> int:
        """Number of messages that wait for its agent."""
        return queue.count(self.dir, Place.WAITING)

    @property
    def monitor(self) -> bool:
        """Whether its monitor is alive."""
        return monitors.is_watched(self.session)

    @property
    def rotation(self) -> str:
        """State of its context's rotation, and what is in the way; '' for nothing."""
        return "" if self.session.is_over else progress.describe(self.dir)

    @cached_property
    def flags(self) -> Flags:
        """Flags that say what was done about a full context, be it the present one or not."""
        return read_flags(self.dir)

    @cached_property
    def reading(self) -> Reading | None:
        """Last reading of its present context; None if unknown."""
        return usage.read_current(self.dir, self.flags)

    @property
    def percent(self) -> float | None:
        """Share of the context that is used, in percent; what an agent tells above 100 is 100."""
        if self.reading is None or self.reading.percent is None:
            return None
        return min(self.reading.percent, FULL)


class Damaged(Struct, frozen=True):
    """Session that cannot be read, and why. `name` is None if its record is what is damaged."""

    id: str
    name: str | None
    why: str

    @property
    def proof(self) -> Proof:
        """Proof that the session is damaged."""
        return Proof(Evidence.ERROR, what=self.why)


def show(
    session: AnySession, make: Callable[[AnySession], T], otherwise: Callable[[Damaged], T]
) -> T:
    """Return what `make` makes of a session; of one that cannot be read, what `otherwise` does."""
    try:
        return make(session)
    except (SmError, OSError, ValueError, OverflowError) as error:
        why = error.message if isinstance(error, SmError) else str(error)
        return otherwise(Damaged(session.name, session.address, why))


def read_records(root: Root) -> tuple[list[AnySession], list[Damaged]]:
    """Read the sessions on record, the oldest first, and those whose record is damaged, by id."""
    found, damaged = [], []
    for name in registry.list_session_names(root):
        try:
            session = registry.find(root, name)
        except StateError as error:
            damaged.append(Damaged(name, None, error.message))
        except UsageError:
            continue  # a folder that is no session's
        else:
            found += [session] if session else []
    return sorted(found, key=lambda session: session.record.created_at), damaged


def read_or(report: Callable[[SmError], None], read: Callable[[], T], otherwise: T) -> T:
    """Return what `read` returns; if that fails, report it and return `otherwise`."""
    try:
        return read()
    except SmError as error:
        report(error)
        return otherwise
