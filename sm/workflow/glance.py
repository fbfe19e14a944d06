"""A glance at a session's terminal, without entering it."""

from __future__ import annotations

from sm.adapters.tmux import MissingPaneError, NoServerError
from sm.session import agent, transcript
from sm.session.registry import AnySession
from sm.text import clean
from sm.workflow import host


def last_lines(session: AnySession, count: int) -> str:
    """The last lines of its screen that are not blank; without a screen those of its transcript."""
    known = agent.load(session.dir)
    if known is not None and agent.is_alive(session.dir):
        try:
            shown = clean(host.of(session).tmux.capture(known.pane_id))
        except (MissingPaneError, NoServerError):
            shown = ""
        lines = [line.rstrip() for line in shown.split("\n")]
        return "\n".join([line for line in lines if line][-count:])
    return transcript.tail(session.transcript, count)
