"""Finds sessions by what people and agents call them: id, name, `PROJECT#ISSUE`, start of an id."""

from __future__ import annotations

import re
from collections.abc import Callable

from sm.base.errors import SmError, UsageError
from sm.base.issue_id import AS_WRITTEN, IssueId, read_issue
from sm.base.nearest import GUESS, find_nearest
from sm.sessions import registry
from sm.sessions.session import AnySession, Session
from sm.store.files import read_guarded
from sm.store.paths import Root, name_session
from sm.store.repair import repair

SHORTEST = 3
"""Characters that the start of an id needs; fewer would match by accident."""
_OF_ISSUE = re.compile(rf"(.+)#({AS_WRITTEN})")


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
    if of_issue := read_address(text):  # a person may write `shop#eng-7`
        text = spell_address(*of_issue)
    for means in _MEANINGS:
        found = [session for session in known if means(session, text)]
        alive = [session for session in found if session.is_living]
        if len(alive or found) == 1:
            (meant,) = alive or found
            repair(root, meant.dir)
            return meant
        if found:
            some = ", ".join(f"'{one.name}' ({one.address})" for one in (alive or found)[:5])
            raise UsageError(f"'{text}' could be {some}: use the whole id")
    raise UsageError(f"no session '{text}': {_advice(text, known)}")


_MEANINGS: tuple[Callable[[AnySession, str], bool], ...] = (
    lambda session, text: session.name == text,
    lambda session, text: session.address == text,
    lambda session, text: len(text) >= SHORTEST and session.name.startswith(text),
)


def resolve_id(text: str) -> str:
    """Return the id that a session has or had: the id of `PROJECT#ISSUE`, else the text itself."""
    issue = read_address(text)
    return name_session(*issue) if issue else text


def read_address(text: str) -> tuple[str, IssueId] | None:
    """Return the project and the issue of `PROJECT#ISSUE`; None for another text."""
    found = _OF_ISSUE.fullmatch(text)
    issue = read_issue(found[2]) if found else None
    return (found[1], issue) if found and issue else None


def spell_address(project: str, issue: IssueId) -> str:
    """Return what people call the session of an issue, such as `shop#7` or `shop#ENG-7`."""
    return f"{project}#{issue}"


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


def _advice(text: str, known: list[AnySession]) -> str:
    names = {name for session in known for name in (session.address, session.name)}
    if near := find_nearest(text, sorted(names), GUESS):
        return f"did you mean '{near}'?"
    if not known:
        return "there is none at all: 'sm new' begins one"
    living_first = sorted(known, key=lambda session: session.is_over)
    called = list(dict.fromkeys(session.address for session in living_first))
    return f"there is {', '.join(called[:5])}{' …' if len(called) > 5 else ''}"
