"""Finds questions that were answered while they waited to be sent: they are not sent any more."""

from __future__ import annotations

from collections.abc import Iterable

from sm.base.errors import SmError
from sm.plugins.notify.model import Held
from sm.sessions import plan
from sm.sessions.history import fold
from sm.store.paths import Root

NOTED_S = 60.0
"""By then a session has on record that it has asked."""


def list_settled(root: Root, words: Iterable[Held], at: float) -> list[Held]:
    """Return the questions of sessions that have no open one any more."""
    old = [word for word in words if word.asked and at - word.at >= NOTED_S]
    asking = {name: _asks(root, name) for name in {word.session for word in old}}
    return [word for word in old if not asking[word.session]]


def _asks(root: Root, session: str) -> bool:
    try:
        return bool(fold(plan.read_receipts(root.session(session))).escalations)
    except SmError:  # better told in vain than not at all
        return True
