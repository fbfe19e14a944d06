"""Follows up a session's messages at each pass over it: hands them over, and tells of them.

A client drops a prompt that the hook refuses, such as a turn that would have begun by itself in a
resting session. So the hook keeps it, and here it becomes a message, which waits until the session
goes on.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable

from msgspec import DecodeError, Struct

from sm.adapters.agent.prompt import Prompt
from sm.adapters.agent.screen import read as read_screen
from sm.adapters.tmux import TmuxError
from sm.base.decoder import decode
from sm.base.errors import SmError, StateError, TemporaryError
from sm.base.nonce import make_nonce
from sm.base.refusal import Refusal
from sm.base.text import normalise
from sm.messages import delivery, notification, queue, screen_state, unknown_screen
from sm.messages.ids import derive_id
from sm.messages.notification import make_event_id, tell, tell_all
from sm.messages.peer_texts import word_turn_end
from sm.messages.queue import Message, MessageFolder, Mode
from sm.sessions import account_faults, agent_state, hook_events, pause, terminal, turn
from sm.sessions.account_fault import AccountCourse
from sm.sessions.agent_state import AgentState, State
from sm.sessions.failure import Failure
from sm.sessions.session import Session
from sm.sessions.signs import DIALOG_PATIENCE_S
from sm.store import events, journal
from sm.store.bounded import parse_json
from sm.store.failpoint import crash_point
from sm.store.files import discard, read_guarded, read_harmless
from sm.store.paths import SessionDir

RETRY_S = (1.0, 15.0)
"""Shortest and longest pause before what waits is tried again; it grows with its age."""
TROUBLE_S = 15.0
"""Time that an obstacle to something else is given to pass, in seconds."""
TOLD_BY_HOOKS_S = 60.0
"""Interval of looks where the agent's hooks, or tmux, tell when it is free: a precaution only."""
SETTLED_S = 2.0
"""Time after a message until an agent without hooks that shows its prompt has answered it, in
seconds."""
RECEIPT_LAG_S = 0.3
"""The hook of a turn's end keeps its payload before it gives the receipt."""
LATE_S = 10.0
"""Time after the receipt, in seconds: an agent that is idle by then was idle before, and the proof
came late."""


def see_to(session: Session, tend: Callable[[], float | None]) -> float:
    """Tend to one matter of a session; return when to do so again, seconds since 1970.

    What is in its way is noted as a problem, once, and keeps nothing else waiting.
    """
    try:
        again_at = tend()
    except SmError as error:
        problem = events.Problem(session=session.name, text=error.message)
        journal.record_once(session.root.journal, problem)
        return time.time() + TROUBLE_S
    return math.inf if again_at is None else again_at


def tend_messages(session: Session) -> float:
    """Hand over what waits for the session, and tell others what they wait for.

    Returns when to look again at the latest, seconds since 1970. What is in the way of one
    message is none of the caller's business: it is tried again.

    Raises:
        StateError: files of the session are not what they must be.

    """
    take_up_held(session)
    if pause.is_paused(session.dir):
        return _tend_paused(session)
    before, settle_at = screen_state.correct(session)
    tell_of_turns(session, before)  # before the next turn begins
    again_at = min(settle_at, tell_of_trouble(session, before))
    drawn_at = unknown_screen.read_drawn_at(session)
    try:
        refusal = delivery.drain(session)
        again_at = min(again_at, unknown_screen.tend(session, refusal, drawn_at))
        after = agent_state.read(session.dir)  # what was typed has begun a turn
        called = screen_state.watch(session, after, refusal)
    except (TemporaryError, TmuxError):
        return time.time() + RETRY_S[0]
    tell_of_turns(session, after)
    hook_events.trim(session.dir)
    try_at = time.time() + TOLD_BY_HOOKS_S if called else plan_next_try(session, after, refusal)
    return min(try_at, _next_look(session, after), again_at)


def _tend_paused(session: Session) -> float:
    """Hand over nothing; what has become of earlier messages is seen all the same."""
    tell_of_turns(session, agent_state.read(session.dir))
    discard(session.dir.screen)
    with contextlib.suppress(TemporaryError, TmuxError):
        delivery.drain(session)
    return math.inf


def plan_next_try(session: Session, told: AgentState, refusal: Refusal | None) -> float:
    """Return when to try again what `refusal` kept from being handed over, seconds since 1970."""
    if refusal in (None, Refusal.GONE, Refusal.BRAKED):
        return math.inf
    now, directory = time.time(), session.dir
    tells = session.profile.hooks and refusal in (Refusal.BUSY, Refusal.DIALOG)
    tells = tells and not screen_state.is_behind(session, told, refusal)
    if tells and not queue.has_mode(directory, Mode.URGENT):
        return now + TOLD_BY_HOOKS_S
    age = now - (
        queue.find_oldest_at(directory, MessageFolder.HANDED, MessageFolder.WAITING) or now
    )
    return now + min(max(age / 4, RETRY_S[0]), RETRY_S[1])


def _next_look(session: Session, told: AgentState) -> float:
    """Return when to look for an end of a turn that no hook tells of, seconds since 1970."""
    if not any(waiter.accepted_at for waiter in notification.list_waiters(session.dir)):
        return math.inf
    if not session.profile.hooks:
        return time.time() + SETTLED_S
    return time.time() + LATE_S if is_turn_over(session, told) else math.inf


def tell_of_turns(session: Session, told: AgentState) -> None:
    """Tell those whose message the agent got in a turn that has ended since.

    While its context is being replaced, the agent goes on with what it was told in the next one.
    """
    if session.dir.hold.exists():
        return
    for waiter in notification.list_waiters(session.dir):
        if waiter.accepted_at is not None and _has_ended(session, told, waiter.accepted_at):
            ident = make_event_id(session, f"stop:{waiter.ident}")
            words = read_last_words(session.dir, (waiter.accepted_at or 0.0) - RECEIPT_LAG_S)
            text = word_turn_end(session.address, words, make_nonce(4))
            if tell(session.root, waiter.session, ident, text):
                crash_point("notify:queued")
                notification.unsubscribe(session.dir, waiter.ident)


def find_turn_end(session: Session, ident: str) -> str | None:
    """Return the agent's last words in the turn in which it got the message; None: not over."""
    at = queue.find_accepted_at(session.dir, ident)
    if at is None or session.dir.hold.exists():
        return None
    if not _has_ended(session, agent_state.read(session.dir), at):
        return None
    return read_last_words(session.dir, at - RECEIPT_LAG_S)


def _has_ended(session: Session, told: AgentState, accepted_at: float) -> bool:
    """Whether the turn that was under way at that moment is over, background tasks included."""
    if not session.profile.hooks:
        return time.time() > accepted_at + SETTLED_S and read_prompt(session) is Prompt.IDLE
    late = time.time() > accepted_at + LATE_S
    return (told.since >= accepted_at or late) and is_turn_over(session, told)


def is_turn_over(session: Session, told: AgentState) -> bool:
    """Whether no turn runs, and no turn that was cut short goes on by itself.

    A turn goes on by itself if a fault of its account has cut it short, or if it is a turn of an
    issue's session: the session's matrix sees to that.
    """
    if told.state is not State.LIMITED:
        return told.state is State.IDLE
    failure = None if session.has_matrix else turn.read(session.dir, told).failure
    return failure is not None and not is_of_account(session, failure)


def is_of_account(session: Session, failure: Failure) -> bool:
    """Whether the failure is one of all sessions of its account, which go on by themselves."""
    standing = account_faults.read_standing(session, failure, gone=False)
    return standing is not None and standing.way is not AccountCourse.ASK


def read_prompt(session: Session) -> Prompt:
    """Return what the agent's screen shows; NONE where there is no screen."""
    return read_screen(session.profile, terminal.capture(session)).prompt


def read_last_words(directory: SessionDir, since: float) -> str:
    """Return the agent's last words in a turn that ended at `since` or later; '' for none."""
    for path in (directory.stop_payload, directory.failure):
        with contextlib.suppress(OSError, StateError, ValueError):
            if path.stat().st_mtime >= since:
                payload = parse_json(read_guarded(path) or b"{}")
                said = payload.get("last_assistant_message") if isinstance(payload, dict) else ""
                return normalise(str(said or ""))
    return ""


def tell_of_trouble(session: Session, told: AgentState) -> float:
    """Tell who is to know that only a person can help; returns when that may come to be so.

    Of an issue's session the reaction matrix tells.
    """
    if session.has_matrix or not session.profile.hooks:
        return math.inf
    signs = turn.read(session.dir, told)
    if (failure := signs.failure) and failure.for_person and not is_of_account(session, failure):
        tell_all(session, f"waits for a person: {failure.fault}", f"failure:{failure.at}")
    if signs.dialog_at is None:
        return math.inf
    if time.time() < (due_at := signs.dialog_at + DIALOG_PATIENCE_S):
        return due_at
    # No hook tells of a dialog that was answered, or turned down.
    if read_prompt(session) is Prompt.DIALOG:
        what = "waits for a person: a dialog is open in its terminal"
        if changed := turn.describe_changed_mode(session.dir):
            what += f". {changed}"
        tell_all(session, what, f"dialog:{signs.dialog_at}")
    return math.inf


HELD_FRAME = "[sm] This was to begin by itself while the session rested:\n\n"
HELD_LIMIT = 1 << 17
"""Limit of the file of refused prompts, in bytes; the hook keeps half as many."""


class HeldMessage(Struct, frozen=True):
    """Line of the file of refused prompts."""

    prompt: str


def take_up_held(session: Session) -> None:
    """Make messages of all refused prompts; a call that was cut short is finished by the next."""
    directory = session.dir
    if not os.path.lexists(directory.being_taken):
        if not os.path.lexists(directory.held_back):
            return
        directory.held_back.rename(directory.being_taken)  # the hook begins another
    at = directory.being_taken.lstat().st_mtime_ns
    for prompt in _read_held(directory):
        message = Message(id=derive_id(f"{at} {prompt}"), text=HELD_FRAME + normalise(prompt))
        if queue.put(directory, message):
            said = "a turn that was to begin by itself is held back"
            journal.record(session.root.journal, events.Problem(session=session.name, text=said))
    discard(directory.being_taken)


def _read_held(directory: SessionDir) -> list[str]:
    found = list[str]()
    for line in read_harmless(directory.being_taken, HELD_LIMIT).splitlines():
        with contextlib.suppress(DecodeError, UnicodeDecodeError):
            found.append(decode(line, HeldMessage).prompt)
    return found
