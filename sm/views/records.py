"""Records of sessions, of which some cannot be read: one that is damaged hides no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from sm.base.errors import SmError, StateError, UsageError
from sm.sessions import registry
from sm.sessions.activity import Evidence, Proof
from sm.sessions.session import AnySession
from sm.store.paths import Root

T = TypeVar("T")


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
