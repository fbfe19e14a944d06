"""Quotation of all that an agent has said: a line of a list has room for its end alone."""

from __future__ import annotations

from collections.abc import Callable

from sm.base.redact import redact
from sm.base.text import normalise
from sm.sessions import agent_state, turn
from sm.sessions.session import Session

LIMIT = 8000
"""Longest quotation, in characters. Of a longer one the end is kept: question and choices."""


def bound(text: str) -> str:
    """Return `text` as a person may see it: without secrets, harmless to a terminal, bounded."""
    clean = normalise(redact(text[-4 * LIMIT :]))
    return clean if len(clean) <= LIMIT else f"… {clean[-LIMIT:]}"


def quote(session: Session, row: str, reason: str, shown: str) -> str:
    """Return all that the agent has said where `row` asks; '' if `shown` is all of it.

    `reason` is what the agent has written into its phase file.
    """
    parts = [bound(one) for one in SOURCES.get(row, _quote_nothing)(session, reason)]
    whole = bound("\n\n".join(filter(None, dict.fromkeys(parts))))
    return "" if whole.split() == shown.split() else whole


def _quote_nothing(_session: Session, _reason: str) -> tuple[str, ...]:
    return ()


def _quote_last(session: Session, _reason: str) -> tuple[str, ...]:
    return (turn.read_last_words(session.dir, agent_state.read(session.dir)),)


def _quote_both(session: Session, reason: str) -> tuple[str, ...]:
    return (reason, *_quote_last(session, reason))


def _quote_dialog(session: Session, _reason: str) -> tuple[str, ...]:
    return (turn.read_dialog(session.dir, agent_state.read(session.dir)),)


SOURCES: dict[str, Callable[[Session, str], tuple[str, ...]]] = {
    "question": _quote_last,
    "silent": _quote_last,
    "escalate": _quote_both,
    "dialog": _quote_dialog,
}
"""Sources of the agent's words, by the row that asks; other rows are told in our own words."""
