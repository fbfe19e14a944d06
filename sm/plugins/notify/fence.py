"""Keeps words back that come late: of a session placed here whose issue another attempt has by now.

It is asked right before they are sent. A word of a session that is over is sent, as it may be what
it ended with; but the end of one that was overtaken takes its words back before it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sm.base.act_guard import OvertakenError, before_act
from sm.base.errors import SmError
from sm.issues.act.attempts import is_ending, is_overtaken
from sm.plugins.notify.model import HeldWord
from sm.plugins.notify.outbox import Outbox
from sm.sessions import fence, registry
from sm.sessions.session import IssueSession


class Sorted(NamedTuple):
    """Words that may be sent, that must not be, and those of which nobody can say it, and `why`."""

    own: list[HeldWord]
    late: list[HeldWord]
    unsure: list[HeldWord]
    why: str


def sort(outbox: Outbox, words: Iterable[HeldWord]) -> Sorted:
    """Sort words that are about to be sent, by what their claims on the remotes say now."""
    own, late, unsure, why = list[HeldWord](), list[HeldWord](), list[HeldWord](), ""
    for word in words:
        try:
            (late if word.attempt and _is_late(outbox, word) else own).append(word)
        except SmError as error:
            unsure.append(word)
            why = error.message
    return Sorted(own, late, unsure, why)


def _is_late(outbox: Outbox, word: HeldWord) -> bool:
    session = _find_session(outbox, word)
    if session and is_overtaken(session):
        return True
    if session and not is_ending(session):
        try:
            with fence.guard(session):
                before_act()
        except OvertakenError:
            session = _find_session(outbox, word)  # it may have come to its own end meanwhile
            return bool(session and not is_ending(session)) or not outbox.is_sending(word)
    return not outbox.is_sending(word)


def _find_session(outbox: Outbox, word: HeldWord) -> IssueSession | None:
    """Return the session that has put the word; None if that is over."""
    found = registry.find(outbox.root, word.session)
    if isinstance(found, IssueSession) and found.attempt == word.attempt:
        return found
    return None
