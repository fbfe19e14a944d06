"""What a person can do to a session here: each by the functions of the verb, in its words."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from sm.base.errors import SmError
from sm.plugins.top.listing import Entry
from sm.sessions import pause, registry
from sm.sessions.session import AnySession, IssueSession
from sm.store.paths import Root


class Act(StrEnum):
    """What is done."""

    REPLY = "reply"
    SEND = "send"
    PAUSE = "pause"
    RESUME = "resume"

    @property
    def takes_text(self) -> bool:
        """Whether a person has to write something."""
        return self in (Act.REPLY, Act.SEND)


class Plan(Struct, frozen=True):
    """An act upon a session, before it is done; `says` is what it will do."""

    act: Act
    session: str
    says: str


TEXT_VERBS = {"sm reply ": Act.REPLY, "sm send ": Act.SEND}
"""How a command begins that answers a need by words."""


def choose_answer(entry: Entry) -> Act:
    """How words that a person types for the entry reach its agent."""
    command = entry.need.command if entry.need else ""
    return next((act for start, act in TEXT_VERBS.items() if command.startswith(start)), Act.SEND)


def plan(root: Root, act: Act, entry: Entry) -> Plan:
    """What the act would do to the session of the entry.

    Raises:
        SmError: the entry has no session, or not any more.

    """
    if entry.row is None:
        command = f": {entry.need.command}" if entry.need else ""
        raise SmError(f"that is no session; a shell has the command for it{command}")
    if entry.over:
        raise SmError(f"'{entry.name}' is over: {entry.over}")
    if act is Act.PAUSE and pause.read(root).find(entry.row.project, entry.row.id):
        act = Act.RESUME
    return Plan(act, entry.row.id, SAYS[act].format(name=entry.name))


SAYS = {
    Act.REPLY: "reply to {name}: its agent gets it as a message, its issue as a comment",
    Act.SEND: "send to {name}: its agent gets it at the end of its turn",
    Act.PAUSE: "pause {name}? Its agent ends its turn, then rests",
    Act.RESUME: "let {name} go on? What was due meanwhile is done then",
}


def carry_out(root: Root, plan: Plan, text: str = "") -> list[str]:
    """Do it; return what came of it.

    Raises:
        SmError: it is refused.

    """
    return DEEDS[plan.act](root, registry.load(root, plan.session), text)


def _reply(_root: Root, session: AnySession, text: str) -> list[str]:
    from sm.cli.reply import answer

    if not isinstance(session, IssueSession):
        raise SmError(f"'{session.address}' works on no issue: send it a message")
    return answer(session.project, session.issue, text)


def _send(root: Root, session: AnySession, text: str) -> list[str]:
    from sm.cli.send import tell
    from sm.messages.send import Letter, send
    from sm.sessions.caller import identify

    sent = send(identify(root, os.environ), session, Letter(text))
    return [tell(session, sent)]


def _pause(root: Root, session: AnySession, _text: str) -> list[str]:
    from sm.messages import pausing

    return pausing.begin(root, *_find_part(root, session))


def _resume(root: Root, session: AnySession, _text: str) -> list[str]:
    from sm.messages import pausing

    return pausing.end(root, *_find_part(root, session))


def _find_part(root: Root, session: AnySession) -> tuple[list[pause.Part], str]:
    """What is meant, and who has said it; an agent may do so only with what is its own."""
    from sm.messages import pausing
    from sm.sessions.caller import identify

    parts = [pausing.name_session(session)]
    return parts, pausing.name_caller(root, identify(root, os.environ), parts)


DEEDS: dict[Act, Callable[[Root, AnySession, str], list[str]]] = {
    Act.REPLY: _reply,
    Act.SEND: _send,
    Act.PAUSE: _pause,
    Act.RESUME: _resume,
}
