"""Gets messages to an agent: queued first, then handed over one at a time, by any process.

`deliver` queues and tries at once. What has to wait is handed over by the agent's own hooks when
its turn ends, or by the next `drain`: of a monitor, of another sender. See docs/MESSAGES.md.
"""

from __future__ import annotations

import contextlib
import time

from msgspec import structs

from sm.adapters.agent.screen import Prompt, Screen
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.composer import SHELLS
from sm.adapters.tmux import MissingPaneError, NoServerError, Pane
from sm.errors import UsageError
from sm.messages import hold, offers, queue
from sm.messages.interrupt import interrupt, is_compacting, is_protected, settle_interrupted
from sm.messages.queue import Message, Mode, Place
from sm.messages.typing import last_accepted_at, resolve, submit
from sm.refusal import Outcome, Refusal, Status
from sm.sessions import agent as agents
from sm.sessions import agent_state
from sm.sessions.agent_state import State
from sm.sessions.session import Session
from sm.store import lock
from sm.store.failpoint import crash_point
from sm.text import clean

TEXT_LIMIT = 250_000
"""Characters. What is longer belongs into a file: an agent CLI takes minutes to read it in."""

LOCK_S = 30.0
LOOK_S = 0.02
REDRAW_S = 0.5
"""A hook is called before the screen is drawn anew, so long at most."""
DRAWN_S = 2.0
"""So long a dialog may take to the screen after its hook was called."""
AT_WORK_S = 60.0
"""So long after the last of its hooks an agent is believed to be at work. Not for ever: of an
interruption by hand no hook tells."""
LONG_ANSWER_S = 600.0
"""The same while its screen changes. Codex draws once a second at work, and nothing when idle."""
DRAWS_S = 3.0


def deliver(session: Session, message: Message) -> Outcome:
    """Queue the message, unless one of its id is known, and hand over what can be now.

    Safe to repeat at any time, from any process, whatever became of the call before.

    Raises:
        TmuxBusyError: tmux did not answer; the message is queued.
        StateError: it could not be queued.

    """
    text = clean(message.text)
    if refusal := _refusal(session, text):
        return Outcome(Status.REFUSED, refusal)
    queue.put(session.dir, structs.replace(message, text=text))
    crash_point("deliver:queued")
    refusal = drain(session)
    if refusal is not None and refusal.is_final:
        queue.withdraw(session.dir, message.id)
    return outcome(session, message.id, refusal)


def _refusal(session: Session, text: str) -> Refusal | None:
    if not session.profile.terminal:
        return Refusal.NO_TERMINAL
    if not text:
        return Refusal.EMPTY
    return Refusal.LONG if len(text) > TEXT_LIMIT else None


def outcome(session: Session, ident: str, refusal: Refusal | None = None) -> Outcome:
    """What is known of the message; `refusal` is what was in the way of the last one tried.

    Raises:
        UsageError: no such message is known.

    """
    directory = session.dir
    match queue.place(directory, ident):
        case Place.DONE:
            return Outcome(Status.ACCEPTED if session.profile.hooks else Status.TYPED)
        case Place.HANDED:
            offer = offers.read(directory).get(ident)
            handed = offer is not None and offers.is_pending(session, offer)
            return Outcome(Status.WAITING, Refusal.HANDED) if handed else INDETERMINATE
        case Place.WAITING:
            return Outcome(Status.WAITING, refusal or Refusal.BEHIND)
        case None if refusal is not None and refusal.is_final:
            return Outcome(Status.REFUSED, refusal)
    raise UsageError(f"no message '{ident}' is known for '{session.name}'")


INDETERMINATE = Outcome(Status.INDETERMINATE)


def drain(session: Session) -> Refusal | None:
    """Hand over what can be handed over now; why the first of the rest cannot, None if all are.

    Raises:
        TmuxBusyError: tmux did not answer.

    """
    directory = session.dir
    if is_at_rest(session):
        return None
    with contextlib.suppress(lock.HeldError), lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
        return drain_held(session)
    return Refusal.BEHIND


def drain_held(session: Session) -> Refusal | None:
    """The same, for a caller that holds the delivery lock."""
    try:
        return _drain(session)
    except (NoServerError, MissingPaneError):
        return Refusal.GONE
    finally:
        queue.tidy(session.dir)


def is_at_rest(session: Session) -> bool:
    """Whether nothing waits, and nothing that was handed over has to be looked into."""
    directory = session.dir
    return queue.is_empty(directory) and not directory.interrupted.exists()


def _drain(session: Session) -> Refusal | None:
    known = agents.load(session.dir)
    if known is None:
        return Refusal.GONE
    _put_away(session)
    pane, screen = look(session, known.pane_id)
    if screen.gone or not agents.runs_in_pane(pane, known):
        return Refusal.GONE
    fresh, held = True, None
    for place, hand_on in ((Place.HANDED, _settle), (Place.WAITING, _hand_over)):
        if place is Place.WAITING and not settle_interrupted(session):
            return Refusal.UNSURE
        for message in queue.each(session.dir, place):
            passes = hold.passes(session.dir, message.id)
            if place is Place.WAITING and not passes:
                held = Refusal.HOLD
                continue
            if not fresh:
                pane, screen = look(session, known.pane_id)
            fresh = False
            refusal = hand_on(session, pane, screen, message)
            if refusal and passes:
                return refusal
            held = refusal or held  # what is about the old context holds up nothing of the new one
    return held


def _put_away(session: Session) -> None:
    """Put away what is confirmed. Of hundreds that a hook has handed over none needs a look."""
    directory = session.dir
    for message in queue.each(directory, Place.HANDED):
        if queue.is_accepted(directory, message.id):
            queue.settle(directory, message)
    offers.tidy(directory)


def look(session: Session, pane_id: str) -> tuple[Pane, Screen]:
    """The pane, and its screen once that shows what the hooks have just told."""
    while True:
        pane, shown = session.tmux.look(pane_id, escapes=True)
        screen = read_screen(session.profile, shown)
        if not _lags(session, screen):
            return pane, _as_told(session, pane, screen)
        time.sleep(LOOK_S)


def _lags(session: Session, screen: Screen) -> bool:
    """Whether a turn has just ended, or begun: then what was submitted looks like a draft still."""
    now = agent_state.read(session.dir)
    if screen.prompt is Prompt.BUSY and now.state in (State.IDLE, State.WAITING):
        at = now.since
    elif screen.prompt is Prompt.IDLE and now.state is State.BUSY:
        at = max(now.since, last_accepted_at(session))  # after an interruption it was busy before
    else:
        return False
    return bool(session.profile.hooks) and 0 <= time.time() - at < REDRAW_S


def _as_told(session: Session, pane: Pane, screen: Screen) -> Screen:
    """The screen, as busy where that does not show and the hooks say so.

    Codex in mid-text looks idle, and a text would interrupt its answer.
    """
    if not session.profile.hooks or session.profile.idle_colour or screen.prompt is not Prompt.IDLE:
        return screen
    return structs.replace(screen, prompt=Prompt.BUSY) if _is_at_work(session, pane) else screen


def _is_at_work(session: Session, pane: Pane) -> bool:
    now = agent_state.read(session.dir)
    if now.state is not State.BUSY:
        return False
    quiet_s = time.time() - max(now.since, now.active_at)
    return quiet_s < AT_WORK_S or (quiet_s < LONG_ANSWER_S and draws(session, pane))


def draws(session: Session, pane: Pane) -> bool:
    """Whether its terminal has shown anything new in the last seconds."""
    at = session.tmux.drew_at(pane.id)
    return at is not None and time.time() - at < DRAWS_S


def _settle(session: Session, pane: Pane, screen: Screen, message: Message) -> Refusal | None:
    """Find out about a message that a process has handed over, or was about to."""
    if queue.is_accepted(session.dir, message.id):
        queue.settle(session.dir, message)
        return None
    if offer := offers.read(session.dir).get(message.id):
        return None if offers.settle(session, screen, message, offer) else Refusal.HANDED
    return resolve(session, pane, screen, message)


def _hand_over(session: Session, pane: Pane, screen: Screen, message: Message) -> Refusal | None:
    """Hand a waiting message over by way of the composer; why not, or None."""
    directory = session.dir
    if screen.prompt is Prompt.BUSY and message.mode is Mode.URGENT:
        if refusal := _untouchable(session, pane, screen):
            return refusal
        if is_compacting(session):
            return Refusal.COMPACTING
        screen = _stop_turn(session, pane, screen, message) or screen
    if refusal := obstacle(session, pane, screen):
        return refusal
    if not queue.move(directory, message, Place.WAITING, Place.HANDED):
        return None  # a hook was quicker
    crash_point("deliver:claimed")
    return submit(session, pane, screen, message)


def _is_starting(session: Session) -> bool:
    """Whether its first prompt is on its way: a text that is typed now could come before that."""
    now = agent_state.read(session.dir)
    return now.state is State.STARTING and bool(now.context)


def _opens_dialog(session: Session, screen: Screen) -> bool:
    """Whether a dialog is on its way to the screen: its hook is called before it is drawn."""
    now = agent_state.read(session.dir)
    if screen.prompt is not Prompt.BUSY or now.state is not State.DIALOG:
        return False
    return 0 <= time.time() - now.since < DRAWN_S  # no hook tells of the answer to it


def _stop_turn(session: Session, pane: Pane, screen: Screen, message: Message) -> Screen | None:
    """The screen after an interruption; None where there is to be none, or it had no effect."""
    if not session.profile.interrupt_key or is_protected(session):
        return None
    return interrupt(session, pane, screen, message)


def obstacle(session: Session, pane: Pane, screen: Screen) -> Refusal | None:
    """Why nothing may be typed now, None if it may."""
    if refusal := _untouchable(session, pane, screen):
        return refusal
    if screen.scrolled:
        return Refusal.DRAFT
    if screen.prompt is not Prompt.IDLE:
        return _OBSTACLES[screen.prompt]
    if screen.draft and (screen.stashed or not session.profile.can_stash):
        return Refusal.DRAFT  # a second draft would take the place of the first
    return None


def _untouchable(session: Session, pane: Pane, screen: Screen) -> Refusal | None:
    """Why not even a key may be pressed."""
    if pane.in_mode:
        return Refusal.MODE
    if pane.command in SHELLS and not agents.has_client(session.dir):
        return Refusal.SHELL
    if _is_starting(session):
        return Refusal.STARTING
    return Refusal.DIALOG if _opens_dialog(session, screen) else None


_OBSTACLES = {
    Prompt.BUSY: Refusal.BUSY,
    Prompt.DIALOG: Refusal.DIALOG,
    Prompt.NONE: Refusal.NO_PROMPT,
}
