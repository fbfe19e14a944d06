"""Gets messages to an agent: queued first, then handed over one at a time, by any process.

`deliver` queues and tries at once. What has to wait is handed over by the agent's own hooks when
its turn ends, or by the next `drain`: of a monitor, of another sender. Under the delivery lock each
message is observed, decided on, and acted on. See docs/MESSAGES.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from msgspec import structs

from sm.adapters.agent.screen import Screen
from sm.adapters.composer import forget, press
from sm.adapters.process import CommandTimeoutError
from sm.adapters.tmux import MissingPaneError, NoServerError, TmuxBusyError, TmuxError
from sm.base.errors import StateError
from sm.base.refusal import Outcome, Refusal, Status
from sm.base.text import clean
from sm.messages import conversation, observe, outcomes, prompt_outcome, queue
from sm.messages.decide import FirstAction, PendingAction, decide_handed, decide_waiting
from sm.messages.draft import (
    RECEIPT_S,
    TypedMessage,
    await_receipt,
    list_keys,
    read_last_typed,
    take_back,
    type_message,
)
from sm.messages.interrupt import close_menu, erase, interrupt, settle_interrupted
from sm.messages.observe import Sight
from sm.messages.prompt_outcome import Fate
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import agent as agents
from sm.sessions import agent_state, pause, spending_hold
from sm.sessions.agent import Agent
from sm.sessions.session import Session
from sm.store import events, journal, lock
from sm.store.failpoint import crash_point
from sm.store.files import write_json
from sm.store.paths import SessionDir

TEXT_LIMIT = 250_000
"""Limit of a text, in characters. A longer one belongs into a file: an agent CLI takes minutes to
read it in."""

LOCK_S = 30.0


def deliver(
    session: Session, message: Message, *, at_last: Callable[[], None] = lambda: None
) -> Outcome:
    """Queue the message, unless one of its id is known, and hand over what can be now.

    Safe to repeat at any time, from any process, whatever became of the call before. It is not
    queued if `at_last`, which is called right before it is, raises an error.

    Raises:
        StateError: it could not be queued.

    """
    text = clean(message.text)
    if refusal := _refusal(session, text):
        return Outcome(Status.REFUSED, refusal)
    queue.put(session.dir, structs.replace(message, text=text), at_last=at_last)
    crash_point("deliver:queued")
    refusal = drain(session)
    if refusal is not None and refusal.is_final and queue.withdraw(session.dir, message.id):
        outcomes.note_refusal(session, message)
    return find_outcome(session, message.id, refusal)


def _refusal(session: Session, text: str) -> Refusal | None:
    if not session.profile.terminal:
        return Refusal.NO_TERMINAL
    if not text:
        return Refusal.EMPTY
    return Refusal.LONG if len(text) > TEXT_LIMIT else None


def find_outcome(session: Session, ident: str, refusal: Refusal | None = None) -> Outcome:
    """Return what is known of the message; `refusal` is the obstacle of the last one tried."""
    directory = session.dir
    match queue.find_place(directory, ident):
        case MessageFolder.DONE:
            return Outcome(Status.ACCEPTED if session.profile.hooks else Status.TYPED)
        case MessageFolder.HANDED:
            offer = conversation.read_offers(directory).get(ident)
            handed = offer is not None and observe.may_confirm(session, offer)
            if refusal is Refusal.UNSENT:
                return Outcome(Status.WAITING, refusal)
            return Outcome(Status.WAITING, Refusal.HANDED) if handed else INDETERMINATE
        case MessageFolder.WAITING:
            return Outcome(Status.WAITING, refusal or Refusal.BEHIND)
        case None:
            is_known = refusal is not None and (refusal.is_final or refusal is Refusal.BLOCKED)
            return Outcome(Status.REFUSED, refusal if is_known else Refusal.WITHDRAWN)


INDETERMINATE = Outcome(Status.INDETERMINATE)


def drain(session: Session) -> Refusal | None:
    """Hand over what can be now; return why the first of the rest cannot, None if all are."""
    directory = session.dir
    if is_at_rest(session):
        return None
    with contextlib.suppress(lock.HeldError), lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
        return drain_held(session)
    return Refusal.BEHIND


def drain_held(session: Session) -> Refusal | None:
    """Hand over what can be handed over; the caller holds the delivery lock."""
    try:
        return _drain(session)
    except (NoServerError, MissingPaneError):
        return Refusal.GONE
    except (TmuxError, TmuxBusyError, CommandTimeoutError) as error:
        problem = events.Problem(session=session.name, text=error.message)
        with contextlib.suppress(StateError):
            journal.record_once(session.root.journal, problem)
        return Refusal.NO_TMUX
    finally:
        queue.tidy(session.dir)


def is_at_rest(session: Session) -> bool:
    """Whether no message waits, and none has to be looked into or written down any more."""
    directory = session.dir
    is_noted = not queue.list_receipts(directory)
    return queue.is_empty(directory) and is_noted and not directory.interrupted.exists()


def _drain(session: Session) -> Refusal | None:
    known = agents.load(session.dir)
    if known is None:
        return Refusal.GONE
    _put_away_confirmed(session)
    if pause.is_paused(session.dir) or spending_hold.is_set(session.dir):
        return _drain_resting(session, known)
    sight: Sight | None = _look(session, known)
    held: Refusal | None = None
    for message in queue.read_each(session.dir, MessageFolder.HANDED):
        passes = queue.passes(session.dir, message.id)
        refusal = _settle(session, sight or _look(session, known), message, passes=passes)
        sight = None  # what was done may have changed it
        if refusal and passes:
            return refusal
        held = refusal or held  # what is about the old context holds up nothing of the new one
    if not settle_interrupted(session):
        return Refusal.UNSURE
    for message in queue.read_each(session.dir, MessageFolder.WAITING):
        if not queue.passes(session.dir, message.id):
            held = Refusal.HOLD
            continue
        if refusal := _hand_over(session, sight or _look(session, known), message):
            return refusal
        sight = None
    return held


def _drain_resting(session: Session, known: Agent) -> Refusal | None:
    """Hand over only what may be typed to an agent that is paused, or may spend nothing.

    What was handed over before, and is not confirmed, is looked into when that is over.
    """
    directory = session.dir
    for message in queue.read_each(directory, MessageFolder.HANDED):
        if _find_rest(directory, message) is None:
            passes = queue.passes(directory, message.id)
            refusal = _settle(session, _look(session, known), message, passes=passes)
            if refusal:
                return refusal
    for message in queue.read_each(directory, MessageFolder.WAITING):
        if _find_rest(directory, message) is None and queue.passes(directory, message.id):
            return _hand_over(session, _look(session, known), message)
    if queue.is_empty(directory):
        return None
    return Refusal.PAUSED if pause.is_paused(directory) else Refusal.BRAKED


def _find_rest(directory: SessionDir, message: Message) -> Refusal | None:
    """Return why the agent rests, and is not told this; None if it is told.

    The first message of a new context is always typed: the old context is gone by then, and its
    agent would have no task. An agent that may spend nothing is asked for a handoff document.
    """
    if message.opens:
        return None
    if pause.is_paused(directory):
        return Refusal.PAUSED
    return None if spending_hold.passes(directory, message.id) else Refusal.BRAKED


def _put_away_confirmed(session: Session) -> None:
    """Put away what is confirmed: of hundreds that a hook has handed over none needs a look."""
    directory = session.dir
    for message in queue.read_each(directory, MessageFolder.HANDED):
        if queue.is_accepted(directory, message.id):
            outcomes.settle(session, message)
    outcomes.catch_up(session)
    conversation.tidy_offers(directory)


def _look(session: Session, agent: Agent) -> Sight:
    sight = observe.look(session, agent.pane_id)
    if sight.screen.gone or not agents.runs_in_pane(sight.pane, agent):
        raise MissingPaneError(Refusal.GONE.sentence)
    return sight


def _settle(session: Session, sight: Sight, message: Message, *, passes: bool) -> Refusal | None:
    """Find out about a message that a process has handed over, or was about to, and act on it.

    Returns HANDED where it has to be looked into again. None: it is put away, waits again, or all
    that could be done has been done in vain (it stays in `cur`).
    """
    if queue.is_accepted(session.dir, message.id):
        return _close(session, sight, message)
    found = observe.observe_handed(session, sight, message, passes=passes)
    act = decide_handed(found.facts)
    if act is PendingAction.LOOK_UP:
        act = decide_handed(observe.look_up(session, sight.told, message, found))
    match act:
        case PendingAction.WAIT:
            return _confirm(session, sight, message, 0)
        case PendingAction.SUBMIT:
            return _submit(session, sight, message)
        case PendingAction.PUT_AWAY:
            queue.accept(session.dir, message.id)
            outcomes.settle(session, message)
            conversation.tidy_offers(session.dir)
        case PendingAction.PUT_BACK:
            forget(session.tmux, sight.pane.id, *list_keys(message.id))
            queue.move(session.dir, message, MessageFolder.HANDED, MessageFolder.WAITING)
            conversation.tidy_offers(session.dir)
        case PendingAction.TAKE_BACK:
            assert isinstance(found.record, TypedMessage), "it is of a typed message alone"
            take_back(session, found.record)
            queue.move(session.dir, message, MessageFolder.HANDED, MessageFolder.WAITING)
    return None


def _submit(session: Session, sight: Sight, message: Message) -> Refusal | None:
    """Press the keys that submit what stands in the composer; in vain if they do not submit it."""
    typed = read_last_typed(session.dir)
    if typed and typed.pressed:
        return _confirm(session, sight, message, 0) and Refusal.UNSENT
    press(session.tmux, sight.pane, session.profile.submit_keys, row=sight.screen.row)
    refusal = _confirm(session, sight, message, RECEIPT_S)
    if refusal is Refusal.HANDED and typed and observe.look(session, sight.pane.id).screen.draft:
        write_json(session.dir.typed, structs.replace(typed, pressed=True))
        return Refusal.UNSENT
    return refusal


def _confirm(session: Session, sight: Sight, message: Message, wait_s: float) -> Refusal | None:
    return await_receipt(session, message, wait_s) or _close(session, sight, message)


def _close(session: Session, sight: Sight, message: Message) -> Refusal | None:
    """Put a message away that the agent has confirmed, unless it does not go on with it."""
    fate = prompt_outcome.find_fate(session, sight.pane, message)
    if fate is not Fate.TAKEN:
        prompt_outcome.note_idle(session)
    if fate is Fate.REFUSED:
        prompt_outcome.give_up(session, sight.pane, message)
        return Refusal.BLOCKED
    crash_point("submit:accepted")
    outcomes.settle(session, message)
    return None


def _hand_over(session: Session, sight: Sight, message: Message) -> Refusal | None:
    """Hand a waiting message over by way of the composer; return why not, or None."""
    if refusal := _find_rest(session.dir, message):
        return refusal
    is_urgent = message.mode is Mode.URGENT
    start = _decide_start(session, sight, urgent=is_urgent)
    if start is FirstAction.CLOSE:
        if not (screen := close_menu(session, sight.pane, sight.screen)):
            return Refusal.DIALOG
        sight = _seen_after_keys(session, sight, screen)
        start = _decide_start(session, sight, urgent=is_urgent)
    if start is FirstAction.ERASE:
        if not (screen := erase(session, sight.pane)):
            return Refusal.UNSURE
        sight = _seen_after_keys(session, sight, screen)
        start = _decide_start(session, sight, urgent=is_urgent)
    if start is FirstAction.INTERRUPT:
        screen = interrupt(session, sight.pane, sight.screen, message) or sight.screen
        sight = _seen_after_keys(session, sight, screen)
        start = _decide_start(session, sight, urgent=False)
    if start in (FirstAction.ERASE, FirstAction.CLOSE):
        return Refusal.UNSURE  # the next attempt does so
    if isinstance(start, Refusal):
        return start
    if not queue.move(session.dir, message, MessageFolder.WAITING, MessageFolder.HANDED):
        return None  # a hook was quicker
    crash_point("deliver:claimed")
    refusal = type_message(session, sight.pane, sight.screen, message)
    return refusal or _close(session, sight, message)


def _seen_after_keys(session: Session, sight: Sight, screen: Screen) -> Sight:
    """Return the look after our keys: they may have ended the turn, as the hooks may tell."""
    return Sight(sight.pane, screen, agent_state.read(session.dir))


def _decide_start(session: Session, sight: Sight, *, urgent: bool) -> FirstAction | Refusal:
    terminal = observe.observe_terminal(session, sight, urgent=urgent)
    return decide_waiting(terminal, urgent=urgent)
