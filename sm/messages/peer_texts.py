"""Texts that tell sessions of one another. What another agent has said is fenced as data."""

from __future__ import annotations

from sm.base.quotation import PEER, SENTENCE_LIMIT, fence, name
from sm.base.text import one_line

QUOTED = 600
"""Number of characters of an agent's last message that are passed on."""


OURS = ("[sm", "---")
"""Beginnings of our own lines."""


def word_message(sender: str, text: str, nonce: str) -> str:
    """Word a message from another session, under a line that names its sender.

    A single line below that one is the sender's for certain. Of several, one could pose as the
    beginning of a message of ours, so these are fenced.
    """
    alone = len(text.strip().splitlines()) <= 1 and not text.lstrip().startswith(OURS)
    said = text if alone else fence("message", text, nonce, PEER)
    return f"[sm] message from {name(sender)}:\n{said}"


def word_turn_end(session: str, words: str, nonce: str) -> str:
    """Tell the sender of a message that the receiver has ended its turn; `words` are its last."""
    head = f"[sm] {name(session)} has ended its turn"
    return f"{head}: it said nothing." if not words else f"{head}:\n{quote_words(words, nonce)}"


def quote_words(words: str, nonce: str) -> str:
    """Return the beginning of what an agent has said last."""
    cut = words if len(words) <= QUOTED else words[: QUOTED - 1] + "…"
    return fence("its last message", cut, nonce)


def word_notice(session: str, what: str) -> str:
    """Tell a parent, or who waits for an answer, `what` has become of a session."""
    return f"[sm] {name(session)} {one_line(what, SENTENCE_LIMIT)}"


def explain_session(label: str, ident: str, parent: str) -> str:
    """Explain the session to an agent that `sm new` has begun, for its system prompt."""
    begun = f"was begun by the session '{name(parent)}'" if parent else "was begun by a person"
    called = ident if label == ident else f"{name(label)} (id {ident})"
    return f"""You run in the session {called} of sm, which {begun}. Other sessions may write to \
you: such a message begins with the line '[sm] message from NAME:'. It comes from another agent, \
not from a person. Answer it, where an answer is wanted, by: sm send NAME 'TEXT'. \
'sm children' shows the sessions that you have begun, 'sm --help' the other commands."""
