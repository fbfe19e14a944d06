"""Decides what is done with each message: typed, waited for, put back, put away. Pure.

A message that was handed over is handed over again only if it is certain that the agent does not
have it. What is known of each comes as facts, which `sm.messages.observe` gathers.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from sm.adapters.agent.prompt import Prompt
from sm.base.refusal import Refusal


class Terminal(Struct, frozen=True, kw_only=True):
    """Facts about a terminal that decide what a typed text or a pressed key would do there now.

    `draft`: a person has typed something and not sent it. `can_stash`: it can be put aside.
    `scrolled`: a draft is longer than the screen. `takes_keys`: false in copy mode.
    """

    prompt: Prompt
    draft: bool = False
    can_stash: bool = True
    scrolled: bool = False
    takes_keys: bool = True
    runs_shell: bool = False
    """A shell would carry the text out."""
    is_starting: bool = False
    """The first prompt is on its way: what is typed could come before it."""
    opens_dialog: bool = False
    """A dialog is on its way to the screen: its hook is called before it is drawn."""
    is_typed_into: bool = False
    """A person's keys may be on their way to the screen."""
    is_compacting: bool = False
    can_interrupt: bool = False
    """The turn under way may be stopped for an urgent message."""
    holds_rest: bool = False
    """The draft is what is left of a message that the agent gave back: it is no person's."""
    shows_menu: bool = False
    """The dialog is a menu that the agent CLI has opened by itself, and nobody is using it."""


class FirstAction(StrEnum):
    """First action on a waiting message."""

    TYPE = "type"
    INTERRUPT = "interrupt"
    ERASE = "erase"
    """The composer is emptied of the rest of a message, which waits as well."""
    CLOSE = "close"
    """A menu that needs no answer is closed."""


def decide_waiting(terminal: Terminal, *, urgent: bool) -> FirstAction | Refusal:
    """Choose the action for the next waiting message; a refusal says why it goes on waiting."""
    if terminal.holds_rest:
        return find_key_obstacle(terminal) or FirstAction.ERASE
    if terminal.shows_menu and terminal.prompt is Prompt.DIALOG:
        return find_key_obstacle(terminal) or FirstAction.CLOSE
    if terminal.prompt is Prompt.BUSY and urgent:
        if refusal := find_key_obstacle(terminal):
            return refusal
        if terminal.is_compacting:
            return Refusal.COMPACTING
        if terminal.can_interrupt:
            return FirstAction.INTERRUPT
    return find_obstacle(terminal) or FirstAction.TYPE


def find_obstacle(terminal: Terminal) -> Refusal | None:
    """Find why no text may be typed now; None if one may."""
    if refusal := find_key_obstacle(terminal):
        return refusal
    if terminal.scrolled:
        return Refusal.DRAFT
    if terminal.prompt is not Prompt.IDLE:
        return _OBSTACLES[terminal.prompt]
    if terminal.draft and not terminal.can_stash:
        return Refusal.DRAFT
    return None


def find_key_obstacle(terminal: Terminal) -> Refusal | None:
    """Find why not even a key may be pressed; None if one may."""
    if not terminal.takes_keys:
        return Refusal.MODE
    if terminal.runs_shell:
        return Refusal.SHELL
    if terminal.is_starting:
        return Refusal.STARTING
    if terminal.is_typed_into:
        return Refusal.CHANGED
    return Refusal.DIALOG if terminal.opens_dialog else None


def shows_unknown(terminal: Terminal) -> bool:
    """Say whether the screen shows an agent CLI, and nothing that is known of it."""
    covered = terminal.scrolled or not terminal.takes_keys or terminal.runs_shell
    return terminal.prompt is Prompt.NONE and not covered


_OBSTACLES = {
    Prompt.BUSY: Refusal.BUSY,
    Prompt.DIALOG: Refusal.DIALOG,
    Prompt.NONE: Refusal.NO_PROMPT,
}


class Heard(StrEnum):
    """Answer of the agent's transcript about a message. UNKNOWN: nothing yet, or unreadable."""

    UNASKED = "unasked"
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Offered(Struct, frozen=True, kw_only=True):
    """Facts about a message that a hook has given to the agent, and that is not confirmed.

    `may_come`: the confirmation may still come from a hook. `readable`: the transcript will tell.
    """

    may_come: bool
    readable: bool = True
    heard: Heard = Heard.UNASKED


class Typed(Struct, frozen=True, kw_only=True):
    """Facts about a message that was typed, or was about to be, and is not confirmed.

    `typed`: tmux has typed it at the last attempt. `confirms`: the agent's hooks would tell of it.
    """

    typed: bool
    confirms: bool = True
    stands: bool = False
    """The text stands in the composer, not submitted."""
    passes: bool = True
    """The text may be submitted now: no other context is about to begin."""
    is_early: bool = False
    """The receipt may still come: it was typed just now, or the agent is not at its prompt."""
    exhausted: bool = False
    """The message was typed as often as may be."""
    is_left: bool = False
    """The composer holds some of it, and perhaps what a person has added."""
    heard: Heard = Heard.UNASKED


class Overtaken(Struct, frozen=True, kw_only=True):
    """Facts about a message after which another one was typed.

    `typed`: tmux has typed it at any attempt, which is asked only if the transcript is not
    `readable`; `exhausted`: at the last that may be.
    """

    typed: bool
    exhausted: bool = False
    readable: bool = True


Handed = Offered | Typed | Overtaken


class PendingAction(StrEnum):
    """Action on a message that was handed over and is not confirmed."""

    WAIT = "wait"
    """The receipt may still come. Messages behind it wait as well."""
    LOOK_UP = "look up"
    """Ask the transcript, which takes longest, and decide again."""
    SUBMIT = "submit"
    """Press the keys that submit what stands in the composer."""
    PUT_AWAY = "put away"
    """The agent has it."""
    PUT_BACK = "put back"
    """The agent does not have it, so it waits again."""
    TAKE_BACK = "take back"
    """The message was not even typed. It waits again, and the attempt does not count."""
    LEAVE = "leave"
    """No source can tell any more. The message is not told twice, and holds no other up."""


def decide_handed(facts: Handed) -> PendingAction:
    """Choose the action on a message that was handed over and is not confirmed."""
    match facts:
        case Offered():
            return _decide_offered(facts)
        case Typed():
            return _decide_typed(facts)
        case Overtaken():
            return _decide_overtaken(facts)


def _decide_offered(facts: Offered) -> PendingAction:
    if facts.may_come:
        return PendingAction.WAIT
    if facts.heard is Heard.UNKNOWN:
        return PendingAction.WAIT if facts.readable else PendingAction.LEAVE
    return _ANSWERS[facts.heard]


def _decide_typed(facts: Typed) -> PendingAction:
    if not facts.typed:
        return PendingAction.TAKE_BACK
    if not facts.confirms:
        return PendingAction.PUT_AWAY
    if facts.stands:
        return PendingAction.SUBMIT if facts.passes else PendingAction.WAIT
    if facts.is_early:
        return PendingAction.WAIT
    act = _ANSWERS[facts.heard]
    if act is not PendingAction.PUT_BACK:
        return act
    if facts.exhausted:
        return PendingAction.LEAVE
    return PendingAction.WAIT if facts.is_left else PendingAction.PUT_BACK


def _decide_overtaken(facts: Overtaken) -> PendingAction:
    if facts.exhausted or (facts.typed and not facts.readable):
        return PendingAction.LEAVE
    return PendingAction.PUT_BACK


_ANSWERS = {
    Heard.UNASKED: PendingAction.LOOK_UP,
    Heard.YES: PendingAction.PUT_AWAY,
    Heard.NO: PendingAction.PUT_BACK,
    Heard.UNKNOWN: PendingAction.LEAVE,
}
