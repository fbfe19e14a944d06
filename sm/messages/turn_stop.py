"""Stops the turn under way: for a pause, and for a session that may spend no more."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum

from sm.adapters.agent.prompt import Prompt
from sm.adapters.composer import press
from sm.adapters.tmux import MissingPaneError, NoServerError
from sm.base.refusal import Refusal
from sm.messages.interrupt import INTERRUPT_S, interrupt, is_protected
from sm.messages.observe import Sight, look
from sm.messages.queue import Message
from sm.sessions import agent as agents
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.sessions.window import is_compacting
from sm.store import lock

DELIVERY_S = 10.0
"""Time that a message that is just being typed may take, in seconds."""
ROUNDS, ROUND_S = 5, 1.5
"""Number of interruptions of a turn that others follow at once, and seconds for each."""
SETTLED_S, DRAWN_S = 0.5, 0.2
"""A turn that another one follows is over for less than the first. If its prompt was not seen, the
other one has begun, and is to end before it begins an agent: only the screen may be behind."""


class StopResult(StrEnum):
    """Result of stopping a turn."""

    STOPPED = "stopped"
    AT_REST = "not at work"
    NO_KEY = "its agent CLI has no key that interrupts"
    NO_END = "its turn does not end"


FindPeople = Callable[[], Refusal | None]
"""Finds out whether people at the terminal keep a turn from being stopped."""


def stop_turn(
    session: Session, by: Message, find_people: FindPeople, note: Callable[[], None]
) -> StopResult | Refusal:
    """Interrupt the agent's turn, if it is at work; a refusal says why not now.

    `by` is what it is interrupted for, and `note` is called just before the key is pressed.

    Raises:
        HeldError: a message has been typed all the time.
        TemporaryError: tmux did not answer.

    """

    def stop(sight: Sight) -> StopResult | Refusal:
        if sight.screen.prompt is not Prompt.BUSY:
            return StopResult.AT_REST
        if refusal := _find_hindrance(session) or find_people():
            return refusal
        note()
        return _interrupt(session, sight, by, INTERRUPT_S)

    return _at_its_terminal(session, stop)


def stop_all(
    session: Session, by: Message, find_people: FindPeople, note: Callable[[], None]
) -> StopResult | Refusal:
    """Interrupt the turn, and stop the agents that it has left running; as `stop_turn`.

    Each of those that ends begins another turn, as the agent is told about it.
    """

    def stop(sight: Sight) -> StopResult | Refusal:
        found: StopResult | Refusal = StopResult.AT_REST
        for _ in range(ROUNDS):
            refusal = _find_hindrance(session) or find_people() or _stop_background(session, sight)
            if refusal:
                return refusal
            sight = look(session, sight.pane.id)
            if sight.screen.prompt is not Prompt.BUSY:
                break
            note()
            found = _interrupt(session, sight, by, ROUND_S, another_may_follow=True)
            if found is StopResult.STOPPED:
                _believe_the_screen(session)
            time.sleep(DRAWN_S if found is StopResult.NO_END else SETTLED_S)
            sight = look(session, sight.pane.id)
        if sight.screen.prompt is Prompt.BUSY:
            return StopResult.NO_END
        return StopResult.STOPPED if found is StopResult.NO_END else found

    return _at_its_terminal(session, stop)


def _at_its_terminal(
    session: Session, stop: Callable[[Sight], StopResult | Refusal]
) -> StopResult | Refusal:
    known = agents.load(session.dir)
    if known is None or not session.profile.terminal:
        return StopResult.AT_REST
    with lock.hold(session.dir.delivery_lock, timeout_s=DELIVERY_S):
        try:
            return stop(look(session, known.pane_id))
        except (NoServerError, MissingPaneError):
            return StopResult.AT_REST


def _find_hindrance(session: Session) -> Refusal | None:
    if is_compacting(session.dir):
        return Refusal.COMPACTING
    return Refusal.PROTECTED if is_protected(session) else None


def _stop_background(session: Session, sight: Sight) -> Refusal | None:
    keys = session.profile.background_keys
    if not keys or sight.screen.prompt not in (Prompt.BUSY, Prompt.IDLE):
        return None
    return press(session.tmux, sight.pane, keys, row=sight.screen.row)


def _believe_the_screen(session: Session) -> None:
    """Take the turn for ended where only hooks say that it runs: no hook tells of its end.

    A second Escape at its prompt would have Codex edit what it was told (0.171.0).
    """
    told = agent_state.read(session.dir)
    if told.state is State.BUSY and not session.profile.idle_colour:
        agent_state.overrule(session.dir, told, State.IDLE)


def _interrupt(
    session: Session,
    sight: Sight,
    by: Message,
    within_s: float,
    *,
    another_may_follow: bool = False,
) -> StopResult:
    if not session.profile.interrupt_key:
        return StopResult.NO_KEY
    pane, screen, _ = sight
    stopped = interrupt(session, pane, screen, by, within_s, another_may_follow=another_may_follow)
    if stopped is not None or look(session, pane.id).screen.prompt is not Prompt.BUSY:
        return StopResult.STOPPED
    return StopResult.NO_END
