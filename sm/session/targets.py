"""Sessions by what people and agents call them: id, name, `PROJECT#ISSUE`, the start of an id."""

from __future__ import annotations

import re
from collections.abc import Callable

from sm.errors import SmError, UsageError
from sm.session import agent, registry
from sm.session.registry import AdHocSession, AnySession, IssueSession, Session
from sm.store.files import read_guarded
from sm.store.paths import Root, session_name
from sm.store.repair import repair

SHORTEST = 3
"""Characters of an id that stand for it; less would match by accident."""
OF_ISSUE = re.compile(r"(.+)#([1-9][0-9]{0,8})")


class EndedError(SmError):
    """The session is on record, but its agent does not run any more."""


def find(root: Root, text: str) -> AnySession:
    """The session that `text` means.

    A name is looked for among the living ones first: it may have been given again.

    Raises:
        UsageError: there is none, or there are several.

    """
    known = registry.all(root)
    for means in _MEANINGS:
        found = [session for session in known if means(session, text)]
        alive = [session for session in found if is_living(session)]
        if len(alive or found) == 1:
            (meant,) = alive or found
            repair(root, meant.dir)
            return meant
        if found:
            raise UsageError(f"'{text}' could be {_listed(alive or found)}: use the whole id")
    raise UsageError(f"no session '{text}': {_advice(text, known)}")


_MEANINGS: tuple[Callable[[AnySession, str], bool], ...] = (
    lambda session, text: session.name == text,
    lambda session, text: address(session) == text,
    lambda session, text: len(text) >= SHORTEST and session.name.startswith(text),
)


def id_of(text: str) -> str:
    """The id that a session has, or had if it is over: that of `PROJECT#ISSUE`, else the text."""
    issue = OF_ISSUE.fullmatch(text)
    return session_name(issue[1], int(issue[2])) if issue else text


def address(session: Session) -> str:
    """What it is called in messages: its name, `PROJECT#ISSUE`, else its id."""
    if isinstance(session, IssueSession):
        return f"{session.project}#{session.issue}"
    return session.label


def is_over(session: Session) -> bool:
    """Whether it is known to have ended: an ad-hoc session's record stays for a while."""
    return session.dir.over.exists()


def is_living(session: Session) -> bool:
    """Whether its agent runs, or an issue's will again."""
    if isinstance(session, AdHocSession):
        return not is_over(session) and agent.is_alive(session.dir)
    return session.dir.identity.exists()


def check_living(session: Session) -> None:
    """Refuse a session whose agent has ended for good.

    Raises:
        EndedError: it has.

    """
    if is_living(session):
        return
    how = (read_guarded(session.dir.over) or b"").decode("utf-8", "replace").strip()
    name = address(session)
    raise EndedError(
        f"'{name}' {how or 'does not run'}: 'sm tail {name}' shows what it said last, "
        f"'sm kill {name}' removes it"
    )


def _listed(sessions: list[AnySession]) -> str:
    return ", ".join(f"'{session.name}' ({address(session)})" for session in sessions[:5])


def _advice(text: str, known: list[AnySession]) -> str:
    from difflib import get_close_matches

    names = {name for session in known for name in (address(session), session.name)}
    if near := get_close_matches(text, sorted(names), 1):
        return f"did you mean '{near[0]}'?"
    if not known:
        return "there is none at all: 'sm new' begins one"
    some = [address(session) for session in known[:5]]
    return f"there is {', '.join(some)}{' …' if len(known) > len(some) else ''}"
