"""Finds sessions by what people and agents call them: id, name, `PROJECT#ISSUE`, start of an id."""

from __future__ import annotations

import re
from collections.abc import Callable

from sm.base.errors import SmError, UsageError
from sm.base.nearest import GUESS, find_nearest
from sm.sessions import registry
from sm.sessions.session import AnySession, Session
from sm.store.files import read_guarded
from sm.store.paths import Root, name_session
from sm.store.repair import repair

SHORTEST = 3
"""Characters that the start of an id needs; fewer would match by accident."""
OF_ISSUE = re.compile(r"(.+)#([1-9][0-9]{0,8})")


class EndedError(SmError):
    """The session is on record, but its agent has ended."""


def find(root: Root, text: str) -> AnySession:
    """Return the session that `text` means.

    It looks for a name among the living sessions first, because an ended session's name may be in
    use again.

    Raises:
        UsageError: no session matches, or several do.

    """
    known = registry.list_all(root)
    for means in _MEANINGS:
        found = [session for session in known if means(session, text)]
        alive = [session for session in found if session.is_living]
        if len(alive or found) == 1:
            (meant,) = alive or found
            repair(root, meant.dir)
            return meant
        if found:
            raise UsageError(f"'{text}' could be {_list_some(alive or found)}: use the whole id")
    raise UsageError(f"no session '{text}': {_advice(text, known)}")


_MEANINGS: tuple[Callable[[AnySession, str], bool], ...] = (
    lambda session, text: session.name == text,
    lambda session, text: session.address == text,
    lambda session, text: len(text) >= SHORTEST and session.name.startswith(text),
)


def resolve_id(text: str) -> str:
    """Return the id that a session has or had: the id of `PROJECT#ISSUE`, else the text itself."""
    issue = OF_ISSUE.fullmatch(text)
    return name_session(issue[1], int(issue[2])) if issue else text


def check_living(session: Session) -> None:
    """Refuse a session whose agent has ended for good.

    Raises:
        EndedError: the agent has ended.

    """
    if session.is_living:
        return
    how = (read_guarded(session.dir.over) or b"").decode("utf-8", "replace").strip()
    name = session.address
    raise EndedError(
        f"'{name}' {how or 'does not run'}: 'sm tail {name}' shows what it said last, "
        f"'sm kill {name}' removes it"
    )


def _list_some(sessions: list[AnySession]) -> str:
    return ", ".join(f"'{session.name}' ({session.address})" for session in sessions[:5])


def _advice(text: str, known: list[AnySession]) -> str:
    names = {name for session in known for name in (session.address, session.name)}
    if near := find_nearest(text, sorted(names), GUESS):
        return f"did you mean '{near}'?"
    if not known:
        return "there is none at all: 'sm new' begins one"
    living_first = sorted(known, key=lambda session: session.is_over)
    called = list(dict.fromkeys(session.address for session in living_first))
    return f"there is {', '.join(called[:5])}{' …' if len(called) > 5 else ''}"
