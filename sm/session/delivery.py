"""Gets messages to an agent: queued first, then handed over by whoever comes by, one at a time.

`deliver` queues and tries at once. What has to wait is handed over by the agent's own hooks when
its turn ends, or by the next `drain`: of a monitor, of another sender. See docs/MESSAGES.md.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from msgspec import structs

from sm.adapters.agent.screen import Prompt, Screen
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.composer import SHELLS
from sm.adapters.tmux import MissingPaneError, NoServerError, Pane
from sm.errors import UsageError
from sm.session import agent as agents
from sm.session import agentstate, queue
from sm.session.agentstate import State
from sm.session.interruption import (
    interrupt,
    is_compacting,
    is_urgent_already,
    settle_interrupted,
)
from sm.session.queue import Message, Mode, Place
from sm.session.submission import Submitted, Target, has_heard, last_accepted_at, resolve, submit
from sm.store import lock
from sm.store.crash import crash_point
from sm.store.files import read_guarded, write_atomic
from sm.text import clean

TEXT_LIMIT = 250_000
"""Characters. What is longer belongs into a file: an agent CLI takes minutes to read it in."""

LOCK_S = 30.0
LOOK_S = 0.02
REDRAW_S = 0.5
"""A hook is called before the screen is drawn anew, so long at most."""
COMPACTED = "compacted:"
"""In place of the prompt: a compaction has come between, at the time that follows."""
COMPACTION_S = 600.0
SETTLED_S = 1.0
"""An agent CLI writes its transcript so much later, at most."""


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


@dataclass(frozen=True)
class Outcome:
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
            handed = ident in _offered(target)
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
        try:
            return _drain(target)
        except (NoServerError, MissingPaneError):
            return Reason.GONE
        finally:
            queue.tidy(directory)
    return Reason.BEHIND


def is_at_rest(target: Target) -> bool:
    """Whether nothing waits, and nothing that was handed over has to be looked into."""
    directory = target.session.dir
    return queue.is_empty(directory) and not directory.interrupted.exists()


def _drain(target: Target) -> Reason | None:
    known = agents.load(target.session.dir)
    if known is None:
        return Reason.GONE
    _put_away(target)
    pane, screen = _look(target, known.pane_id)
    if not agents.alive(pane, known):
        return Reason.GONE
    fresh = True
    for place, hand_on in ((Place.HANDED, _settle), (Place.WAITING, _hand_over)):
        if place is Place.WAITING and not settle_interrupted(target):
            return Reason.UNSURE
        for message in queue.each(target.session.dir, place):
            if not fresh:
                pane, screen = _look(target, known.pane_id)
            if reason := hand_on(target, pane, screen, message):
                return reason
            fresh = False
    return None


def _put_away(target: Target) -> None:
    """Put away what is confirmed. Of hundreds that a hook has handed over none needs a look."""
    directory = target.session.dir
    for message in queue.each(directory, Place.HANDED):
        if queue.is_accepted(directory, message.id):
            queue.settle(directory, message)


def _look(target: Target, pane_id: str) -> tuple[Pane, Screen]:
    """The pane, and its screen once that shows what the hooks have just told."""
    while True:
        pane, shown = target.tmux.look(pane_id, escapes=True)
        screen = read_screen(target.profile, shown)
        if not _lags(target, screen):
            return pane, screen
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
    return bool(target.profile.hooks) and time.time() < at + REDRAW_S


def _settle(target: Target, pane: Pane, screen: Screen, message: Message) -> Reason | None:
    """Find out about a message that somebody has handed over, or was about to."""
    if queue.is_accepted(target.session.dir, message.id):
        queue.settle(target.session.dir, message)
        return None
    if message.id in (offered := _offered(target)):
        return _settle_offered(target, message, offered[message.id])
    found = resolve(target, pane, screen, message)
    return _REASONS.get(found) if found else None


def _settle_offered(target: Target, message: Message, to: tuple[str, str]) -> Reason | None:
    """A hook has printed it: the next event of the same turn, or the transcript, proves it."""
    directory, (_, prompt) = target.session.dir, to
    now = agentstate.read(directory)
    same_turn = (now.context, now.prompt) == to and now.state is State.BUSY
    if same_turn or time.time() < now.since + SETTLED_S:
        return Reason.HANDED
    compacted_at = _compacted_at(prompt)
    heard = has_heard(target, message.text, compacted_at=compacted_at)
    if heard is None and time.time() < compacted_at + COMPACTION_S:
        return Reason.HANDED
    if heard:
        queue.accept(directory, message.id)
        queue.settle(directory, message)
    else:  # its client was stopped before it read what the hook said, or has summed it up
        queue.move(directory, message, Place.HANDED, Place.WAITING)
    left = [line for line in _offer_lines(target) if line and f"-{message.id}." not in line]
    write_atomic(directory.offered, "".join(f"{line}\n" for line in left))
    return None


def _compacted_at(prompt: str) -> float:
    """When a compaction came between; 0 where none did, or a hook could not write it whole."""
    try:
        return float(prompt.removeprefix(COMPACTED)) if prompt.startswith(COMPACTED) else 0.0
    except ValueError:
        return 0.0


def _offered(target: Target) -> dict[str, tuple[str, str]]:
    """The context and prompt to which a hook has handed each message, by message id."""
    offers: dict[str, tuple[str, str]] = {}
    for line in _offer_lines(target):
        with contextlib.suppress(ValueError):
            name, context, prompt = line.split()
            if found := queue.NAME.fullmatch(name):
                offers[found[2]] = (context, prompt)
    return offers


def _offer_lines(target: Target) -> Iterator[str]:
    yield from (
        (read_guarded(target.session.dir.offered) or b"").decode("ascii", "replace").split("\n")
    )


def _hand_over(target: Target, pane: Pane, screen: Screen, message: Message) -> Reason | None:
    """Hand a waiting message over by way of the composer; why not, or None."""
    directory = target.session.dir
    if directory.hold.exists():
        return Reason.HOLD
    if pane.in_mode:
        return Reason.MODE
    if pane.command in SHELLS and not agents.has_client(directory):
        return Reason.SHELL
    if _opens_dialog(target, screen):
        return Reason.DIALOG
    if screen.prompt is Prompt.BUSY and message.mode is Mode.URGENT:
        if is_compacting(target):
            return Reason.COMPACTING
        screen = _stop_turn(target, pane, screen, message) or screen
    if reason := _obstacle(target, screen):
        return reason
    if not queue.move(directory, message, Place.WAITING, Place.HANDED):
        return None  # a hook was quicker
    crash_point("deliver:claimed")
    return _REASONS.get(submit(target, pane, screen, message))


def _opens_dialog(target: Target, screen: Screen) -> bool:
    """Whether a dialog is on its way to the screen: its hook is called before it is drawn."""
    state = agentstate.read(target.session.dir).state
    return screen.prompt is Prompt.BUSY and state is State.DIALOG


def _stop_turn(target: Target, pane: Pane, screen: Screen, message: Message) -> Screen | None:
    """The screen after an interruption; None where there is to be none, or it had no effect."""
    if not target.profile.interrupt_key or is_urgent_already(target):
        return None
    return interrupt(target, pane, screen, message)


def _obstacle(target: Target, screen: Screen) -> Reason | None:
    if screen.scrolled:
        return Reason.DRAFT
    if screen.prompt is not Prompt.IDLE:
        return _OBSTACLES[screen.prompt]
    if screen.draft and (screen.stashed or not target.profile.can_stash):
        return Reason.DRAFT  # a second draft would take the place of the first
    return None


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
