"""Gets messages to an agent: queued first, then handed over by whoever comes by, one at a time.

`deliver` queues and tries at once. What has to wait is handed over by the agent's own hooks when
its turn ends, or by the next `drain`: of a monitor, of another sender. See docs/MESSAGES.md.
"""

from __future__ import annotations

import contextlib
import time
from enum import StrEnum

from msgspec import Struct, structs

from sm.adapters.agent.screen import Prompt, Screen
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.composer import SHELLS
from sm.adapters.tmux import MissingPaneError, NoServerError, Pane
from sm.errors import UsageError
from sm.session import agent as agents
from sm.session import agentstate, handoff, offers, queue
from sm.session.agentstate import State
from sm.session.interruption import (
    interrupt,
    is_compacting,
    is_protected,
    settle_interrupted,
)
from sm.session.queue import Message, Mode, Place
from sm.session.submission import Submitted, Target, last_accepted_at, resolve, submit
from sm.store import lock
from sm.store.crash import crash_point
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


class Reason(StrEnum):
    """Why a message is not with the agent. GONE stays so; after the others it still waits."""

    GONE = "the agent does not run in its pane"
    EMPTY = "nothing is left of the text to send"
    LONG = "the text is too long: put it into a file and send its path"
    NO_TERMINAL = "its agent has no terminal to type into"
    HOLD = "its context is being replaced"
    SHELL = "a shell runs in its pane, which would carry the text out"
    MODE = "a person looks through its history (copy mode), or its pane takes no input"
    NO_PROMPT = "it shows no input line"
    DIALOG = "it asks a question, which Enter would answer"
    BUSY = "it is at work: it gets it at the end of its turn"
    COMPACTING = "its context is being summed up"
    UNSURE = "the agent may have taken back what it was told before"
    DRAFT = "a person has half a line typed there"
    CHANGED = "somebody typed at that moment"
    BEHIND = "other messages are before it"
    HANDED = "it was given to the agent, which has not confirmed it yet"

    @property
    def final(self) -> bool:
        """Whether trying again is of no use."""
        return self in (Reason.GONE, Reason.EMPTY, Reason.LONG, Reason.NO_TERMINAL)


class Status(StrEnum):
    """What became of a message.

    ACCEPTED: the agent itself said that it has it. TYPED: typed and sent off, to an agent that
    cannot say so. INDETERMINATE: typed, and not confirmed; it is looked into, and not typed
    again before that. WAITING: queued. REFUSED: not queued, and never will be.
    """

    ACCEPTED = "accepted"
    TYPED = "typed"
    INDETERMINATE = "indeterminate"
    WAITING = "waiting"
    REFUSED = "refused"


class Outcome(Struct, frozen=True):
    """A status; with WAITING and REFUSED its reason."""

    status: Status
    reason: Reason | None = None

    @property
    def delivered(self) -> bool:
        """Whether the agent has it, by this call or by an earlier one."""
        return self.status in (Status.ACCEPTED, Status.TYPED)


def deliver(target: Target, message: Message) -> Outcome:
    """Queue the message, unless one of its id is known, and hand over what can be now.

    Safe to repeat at any time, from any process, whatever became of the call before.

    Raises:
        TmuxBusyError: tmux did not answer; the message is queued.
        StateError: it could not be queued.

    """
    text = clean(message.text)
    if reason := _refusal(target, text):
        return Outcome(Status.REFUSED, reason)
    queue.put(target.session.dir, structs.replace(message, text=text))
    crash_point("deliver:queued")
    reason = drain(target)
    if reason is not None and reason.final:
        queue.withdraw(target.session.dir, message.id)
    return outcome(target, message.id, reason)


def _refusal(target: Target, text: str) -> Reason | None:
    if not target.profile.terminal:
        return Reason.NO_TERMINAL
    if not text:
        return Reason.EMPTY
    return Reason.LONG if len(text) > TEXT_LIMIT else None


def outcome(target: Target, ident: str, reason: Reason | None = None) -> Outcome:
    """What is known of the message; `reason` is why the last one tried was not handed over.

    Raises:
        UsageError: no such message is known.

    """
    directory = target.session.dir
    match queue.place(directory, ident):
        case Place.DONE:
            return Outcome(Status.ACCEPTED if target.profile.hooks else Status.TYPED)
        case Place.HANDED:
            offer = offers.read(directory).get(ident)
            handed = offer is not None and offers.is_pending(target, offer)
            return Outcome(Status.WAITING, Reason.HANDED) if handed else INDETERMINATE
        case Place.WAITING:
            return Outcome(Status.WAITING, reason or Reason.BEHIND)
        case None if reason is not None and reason.final:
            return Outcome(Status.REFUSED, reason)
    raise UsageError(f"no message '{ident}' is known for '{target.session.name}'")


INDETERMINATE = Outcome(Status.INDETERMINATE)


def drain(target: Target) -> Reason | None:
    """Hand over what can be handed over now; why the first of the rest cannot, None if all are.

    Raises:
        TmuxBusyError: tmux did not answer.

    """
    directory = target.session.dir
    if is_at_rest(target):
        return None
    with contextlib.suppress(lock.HeldError), lock.hold(directory.delivery_lock, timeout_s=LOCK_S):
        return drain_held(target)
    return Reason.BEHIND


def drain_held(target: Target) -> Reason | None:
    """The same, for a caller that holds the delivery lock."""
    try:
        return _drain(target)
    except (NoServerError, MissingPaneError):
        return Reason.GONE
    finally:
        queue.tidy(target.session.dir)


def is_at_rest(target: Target) -> bool:
    """Whether nothing waits, and nothing that was handed over has to be looked into."""
    directory = target.session.dir
    return queue.is_empty(directory) and not directory.interrupted.exists()


def _drain(target: Target) -> Reason | None:
    known = agents.load(target.session.dir)
    if known is None:
        return Reason.GONE
    _put_away(target)
    pane, screen = look(target, known.pane_id)
    if screen.gone or not agents.alive(pane, known):
        return Reason.GONE
    fresh, held = True, None
    for place, hand_on in ((Place.HANDED, _settle), (Place.WAITING, _hand_over)):
        if place is Place.WAITING and not settle_interrupted(target):
            return Reason.UNSURE
        for message in queue.each(target.session.dir, place):
            passes = handoff.passes(target.session.dir, message.id)
            if place is Place.WAITING and not passes:
                held = Reason.HOLD
                continue
            if not fresh:
                pane, screen = look(target, known.pane_id)
            fresh = False
            reason = hand_on(target, pane, screen, message)
            if reason and passes:
                return reason
            held = reason or held  # what is about the old context holds up nothing of the new one
    return held


def _put_away(target: Target) -> None:
    """Put away what is confirmed. Of hundreds that a hook has handed over none needs a look."""
    directory = target.session.dir
    for message in queue.each(directory, Place.HANDED):
        if queue.is_accepted(directory, message.id):
            queue.settle(directory, message)
    offers.tidy(directory)


def look(target: Target, pane_id: str) -> tuple[Pane, Screen]:
    """The pane, and its screen once that shows what the hooks have just told."""
    while True:
        pane, shown = target.tmux.look(pane_id, escapes=True)
        screen = read_screen(target.profile, shown)
        if not _lags(target, screen):
            return pane, _as_told(target, pane, screen)
        time.sleep(LOOK_S)


def _lags(target: Target, screen: Screen) -> bool:
    """Whether a turn has just ended, or begun: then what was submitted looks like a draft still."""
    now = agentstate.read(target.session.dir)
    if screen.prompt is Prompt.BUSY and now.state in (State.IDLE, State.WAITING):
        at = now.since
    elif screen.prompt is Prompt.IDLE and now.state is State.BUSY:
        at = max(now.since, last_accepted_at(target))  # after an interruption it was busy before
    else:
        return False
    return bool(target.profile.hooks) and 0 <= time.time() - at < REDRAW_S


def _as_told(target: Target, pane: Pane, screen: Screen) -> Screen:
    """The screen, as busy where that does not show and the hooks say so.

    Codex in mid-text looks idle, and a text would interrupt its answer.
    """
    if not target.profile.hooks or target.profile.idle_colour or screen.prompt is not Prompt.IDLE:
        return screen
    return structs.replace(screen, prompt=Prompt.BUSY) if _is_at_work(target, pane) else screen


def _is_at_work(target: Target, pane: Pane) -> bool:
    now = agentstate.read(target.session.dir)
    if now.state is not State.BUSY:
        return False
    quiet_s = time.time() - max(now.since, now.active_at)
    return quiet_s < AT_WORK_S or (quiet_s < LONG_ANSWER_S and _draws(target, pane))


def _draws(target: Target, pane: Pane) -> bool:
    """Whether its terminal has shown anything new in the last seconds."""
    at = target.tmux.drew_at(pane.id)
    return at is not None and time.time() - at < DRAWS_S


def _settle(target: Target, pane: Pane, screen: Screen, message: Message) -> Reason | None:
    """Find out about a message that somebody has handed over, or was about to."""
    if queue.is_accepted(target.session.dir, message.id):
        queue.settle(target.session.dir, message)
        return None
    if offer := offers.read(target.session.dir).get(message.id):
        return None if offers.settle(target, message, offer) else Reason.HANDED
    found = resolve(target, pane, screen, message)
    return _REASONS.get(found) if found else None


def _hand_over(target: Target, pane: Pane, screen: Screen, message: Message) -> Reason | None:
    """Hand a waiting message over by way of the composer; why not, or None."""
    directory = target.session.dir
    if screen.prompt is Prompt.BUSY and message.mode is Mode.URGENT:
        if reason := _untouchable(target, pane, screen):
            return reason
        if is_compacting(target):
            return Reason.COMPACTING
        screen = _stop_turn(target, pane, screen, message) or screen
    if reason := obstacle(target, pane, screen):
        return reason
    if not queue.move(directory, message, Place.WAITING, Place.HANDED):
        return None  # a hook was quicker
    crash_point("deliver:claimed")
    return _REASONS.get(submit(target, pane, screen, message))


def _opens_dialog(target: Target, screen: Screen) -> bool:
    """Whether a dialog is on its way to the screen: its hook is called before it is drawn."""
    now = agentstate.read(target.session.dir)
    if screen.prompt is not Prompt.BUSY or now.state is not State.DIALOG:
        return False
    return 0 <= time.time() - now.since < DRAWN_S  # no hook tells of the answer to it


def _stop_turn(target: Target, pane: Pane, screen: Screen, message: Message) -> Screen | None:
    """The screen after an interruption; None where there is to be none, or it had no effect."""
    if not target.profile.interrupt_key or is_protected(target):
        return None
    return interrupt(target, pane, screen, message)


def obstacle(target: Target, pane: Pane, screen: Screen) -> Reason | None:
    """Why nothing may be typed now, None if it may."""
    if reason := _untouchable(target, pane, screen):
        return reason
    if screen.scrolled:
        return Reason.DRAFT
    if screen.prompt is not Prompt.IDLE:
        return _OBSTACLES[screen.prompt]
    if screen.draft and (screen.stashed or not target.profile.can_stash):
        return Reason.DRAFT  # a second draft would take the place of the first
    return None


def _untouchable(target: Target, pane: Pane, screen: Screen) -> Reason | None:
    """Why not even a key may be pressed."""
    if pane.in_mode:
        return Reason.MODE
    if pane.command in SHELLS and not agents.has_client(target.session.dir):
        return Reason.SHELL
    return Reason.DIALOG if _opens_dialog(target, screen) else None


_OBSTACLES = {
    Prompt.BUSY: Reason.BUSY,
    Prompt.DIALOG: Reason.DIALOG,
    Prompt.NONE: Reason.NO_PROMPT,
}
_REASONS = {
    Submitted.DOUBTFUL: Reason.HANDED,
    Submitted.REFUSED_GONE: Reason.GONE,
    Submitted.REFUSED_MODE: Reason.MODE,
    Submitted.REFUSED_SCREEN: Reason.CHANGED,
    Submitted.REFUSED_SHELL: Reason.SHELL,
}
