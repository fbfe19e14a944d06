"""Delivers a message to an agent by typing it, or says why that cannot be done now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from sm.adapters.composer import Typed, is_typed, pattern, type_once
from sm.adapters.tmux import MissingPaneError, NoServerError, Pane, Tmux
from sm.session import agent as agents
from sm.session.agent import Agent
from sm.text import harmless, normalise

COMPOSER_LINES = 12
"""The input line is above at most so many lines: its frame, a status line, a short menu."""


class Reason(StrEnum):
    """Why nothing was typed. GONE and EMPTY stay so; after the others a later try may succeed."""

    GONE = "the agent does not run in its pane"
    EMPTY = "nothing is left of the text to type"
    MODE = "a person looks through its history (copy mode), or its pane takes no input"
    NO_PROMPT = "it shows no input line"
    DIALOG = "it asks a question, which Enter would answer"

    @property
    def final(self) -> bool:
        """Whether trying again is of no use."""
        return self in (Reason.GONE, Reason.EMPTY)


class Status(StrEnum):
    """What became of a message."""

    TYPED = "typed"
    ALREADY = "already"
    REFUSED = "refused"


@dataclass(frozen=True)
class Outcome:
    """A status; with REFUSED its reason."""

    status: Status
    reason: Reason | None = None

    @property
    def delivered(self) -> bool:
        """Whether the agent has it, by this call or by an earlier one."""
        return self.status is not Status.REFUSED


def deliver(tmux: Tmux, agent: Agent, message_id: str, text: str, *, glyph: str) -> Outcome:
    """Type `text` into the agent's composer, once for each `message_id` and launch.

    `glyph` is what its input line begins with; without one on the screen nothing is typed.
    Safe to repeat at any time, from any process, whatever became of the call before.

    Raises:
        TmuxBusyError: it is not known whether it was typed; asking again is safe.

    """
    plain = harmless(normalise(text))
    if not plain:
        return _refused(Reason.EMPTY)
    try:
        pane, shown = tmux.look(agent.pane_id)
        if not agents.alive(pane, agent):
            return _refused(Reason.GONE)
        return _type(tmux, pane, shown.rstrip().splitlines(), message_id, plain, glyph)
    except (NoServerError, MissingPaneError):
        return _refused(Reason.GONE)


def _type(
    tmux: Tmux, pane: Pane, screen: list[str], message_id: str, text: str, glyph: str
) -> Outcome:
    reason = Reason.MODE if pane.in_mode else _reason(screen[-COMPOSER_LINES:], glyph)
    if reason:
        known = is_typed(tmux, pane, message_id)
        return Outcome(Status.ALREADY) if known else _refused(reason)
    # A message of old that looks like a choice must not stand in the way for ever.
    absent = "" if _matches(_choice(glyph), screen) else _choice(glyph)
    typed = type_once(tmux, pane, message_id, [text], shown=_input_line(glyph), absent=absent)
    return OUTCOMES[typed]


def _reason(composer: list[str], glyph: str) -> Reason | None:
    if _matches(_choice(glyph), composer):
        return Reason.DIALOG
    return None if _matches(_input_line(glyph), composer) else Reason.NO_PROMPT


def _input_line(glyph: str) -> str:
    return f"^ *{pattern(glyph)}"


def _choice(glyph: str) -> str:
    """The line of a dialog's list that Enter would choose: `❯ 1. Yes`."""
    return f"^ *{pattern(glyph)}.?[0-9]+[.)]"


def _matches(expression: str, lines: list[str]) -> bool:
    return any(re.search(expression, line) for line in lines)


def _refused(reason: Reason) -> Outcome:
    return Outcome(Status.REFUSED, reason)


OUTCOMES = {
    Typed.TYPED: Outcome(Status.TYPED),
    Typed.ALREADY: Outcome(Status.ALREADY),
    Typed.REFUSED_GONE: _refused(Reason.GONE),
    Typed.REFUSED_MODE: _refused(Reason.MODE),
    Typed.REFUSED_SCREEN: _refused(Reason.NO_PROMPT),
}
