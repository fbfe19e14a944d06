"""Types a message into an agent's composer and learns whether the agent has it.

What is known of a message that was typed: tmux remembers the typing itself, in the pane; the
agent's prompt hook leaves a file when it hears of the prompt; the agent's own transcript has it.
A process that finds a message half-way asks these three before it types anything again.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from msgspec import Struct, structs

from sm.adapters.agent import transcript
from sm.adapters.agent.screen import Prompt, Screen
from sm.adapters.composer import is_typed, press, type_once
from sm.adapters.tmux import Pane
from sm.messages import hold, queue
from sm.messages.queue import Message, Place
from sm.messages.wire import Wire, last_line, wire
from sm.refusal import Refusal
from sm.sessions import agent_state, window
from sm.sessions.session import Session
from sm.store.damage import read_rebuildable
from sm.store.failpoint import crash_point
from sm.store.files import discard, write_atomic, write_json
from sm.store.paths import SessionDir

RECEIPT_S = 5.0
PIECE_S = 0.03
"""So long a receipt is waited for, and for each piece of a long text. Claude Code 2.1.329 needs
0.05 s, 0.2 at worst, and 8 s for a thousand pieces."""
DOUBT_S = 10.0
"""After so long without a receipt, with an empty composer, the text is looked for elsewhere."""
ATTEMPTS = 3
LOOK_S = 0.005
ROW = 40
"""A row that holds less of a long line is that of another text."""


class TypedMessage(Struct, frozen=True):
    """What was last typed: `line` is how it shows in the composer, `at` seconds since 1970.

    `before` is the message that was typed before this one, as long as this may not be typed yet.
    """

    id: str
    attempt: int
    line: str
    at: float
    before: TypedMessage | None = None

    @property
    def key(self) -> str:
        """What tmux remembers it by."""
        return f"{self.id}.{self.attempt}"


def last_typed(directory: SessionDir) -> TypedMessage | None:
    """The message that was last typed; None also where that is damaged: others know of it, too."""
    return read_rebuildable(directory.typed, TypedMessage)


def keys(ident: str) -> tuple[str, ...]:
    """All by which tmux may remember the message of this id."""
    return tuple(f"{ident}.{attempt + 1}" for attempt in range(ATTEMPTS))


def submit(session: Session, pane: Pane, screen: Screen, message: Message) -> Refusal | None:
    """Type `message`, which is in `cur`, into the composer that `screen` shows, once.

    A person's draft is put aside and comes back. Returns HANDED when it is typed and not confirmed
    in time; any other refusal is what was in the way of typing: then the message waits again.

    Raises:
        TmuxBusyError: it is not known whether it was typed; `resolve` finds out.

    """
    directory = session.dir
    way = _way(session, message)
    before = last_typed(directory)
    attempt = before.attempt + 1 if before and before.id == message.id else 1
    typed = TypedMessage(message.id, attempt, way.line, time.time(), _alone(before))
    write_json(directory.typed, typed)
    write_atomic(directory.expect, _expectation(message, way))
    crash_point("submit:before-typing")
    refusal = type_once(
        session.tmux,
        pane,
        typed.key,
        way.pieces,
        row=screen.row,
        stash=session.profile.stash_key if screen.draft else "",
        submit=session.profile.submit_keys,
    )
    crash_point("submit:after-typing")
    if refusal is None:
        return confirm(session, message, RECEIPT_S + PIECE_S * len(way.pieces))
    write_atomic(directory.expect, "")
    _untyped(session, typed)
    _again(session, message)
    return refusal


def last_accepted_at(session: Session) -> float:
    """When the agent got what was last typed, seconds since 1970; 0 where it has not."""
    typed = last_typed(session.dir)
    return (queue.accepted_at(session.dir, typed.id) if typed else None) or 0.0


def _alone(typed: TypedMessage | None) -> TypedMessage | None:
    return structs.replace(typed, before=None) if typed else None


def _untyped(session: Session, typed: TypedMessage) -> None:
    """Take back that it was typed: what an interruption would give back is the one before."""
    if typed.before:
        write_json(session.dir.typed, typed.before)
    else:
        discard(session.dir.typed)


def _way(session: Session, message: Message) -> Wire:
    return wire(session.profile, message, queue.phrase(session.dir, message))


def _expectation(message: Message, way: Wire) -> str:
    how = "exact" if way.exact else "within"
    prompt = json.dumps(way.expected, ensure_ascii=False)[1:-1]
    return f"{message.id} {how}\n{prompt}\n{way.answer}\n"


def confirm(session: Session, message: Message, timeout_s: float = RECEIPT_S) -> Refusal | None:
    """Wait for the receipt of a message that was typed, and put it away; HANDED without one."""
    directory = session.dir
    if not session.profile.hooks:
        queue.settle(directory, message)
        return None
    deadline = time.monotonic() + timeout_s
    while not queue.is_accepted(directory, message.id):
        if time.monotonic() >= deadline:
            return Refusal.HANDED
        time.sleep(LOOK_S)
    crash_point("submit:accepted")
    queue.settle(directory, message)
    return None


def resolve(session: Session, pane: Pane, screen: Screen, message: Message) -> Refusal | None:
    """Find out what has become of a message in `cur` that a process was typing.

    HANDED: that has to be looked into again. None: it is confirmed, or waits again, or all that
    could be done has been done in vain (it stays in `cur`).
    """
    directory = session.dir
    if queue.is_accepted(directory, message.id):
        return confirm(session, message)
    typed = last_typed(directory)
    if typed is None or typed.id != message.id:
        _typed_before(session, pane, message)
        return None
    if not is_typed(session.tmux, pane, typed.key):
        _untyped(session, typed)
        _again(session, message)
        return None
    if not session.profile.hooks:
        return confirm(session, message)
    if shows(screen, typed) and (screen.prompt is Prompt.IDLE or screen.scrolled):
        # It stands there, typed and not submitted.
        if not hold.passes(directory, message.id):
            return Refusal.HANDED  # its context is about to be cleared
        press(session.tmux, pane, session.profile.submit_keys, row=screen.row)
        return confirm(session, message)
    return _doubt(session, screen, message, typed)


def _typed_before(session: Session, pane: Pane, message: Message) -> None:
    """Let a message wait again after which another one was typed, unless the agent may have it."""
    *others, last = keys(message.id)
    if is_typed(session.tmux, pane, last):
        return
    if not reads_conversation(session) and any(is_typed(session.tmux, pane, key) for key in others):
        return
    _again(session, message)


def _doubt(
    session: Session, screen: Screen, message: Message, typed: TypedMessage
) -> Refusal | None:
    """What has become of a message that was typed and is neither confirmed nor to be seen."""
    if time.time() < typed.at + _patience(session, message) or screen.prompt is not Prompt.IDLE:
        return confirm(session, message, timeout_s=0)
    way = _way(session, message)
    beside = way.line if way.answer else ""
    heard = has_heard(session, told_by(session, message), since=typed.at, beside=beside)
    if heard:
        queue.accept(session.dir, message.id)
        return confirm(session, message)
    if heard is None or typed.attempt >= ATTEMPTS:
        return None
    if screen.draft:
        return Refusal.HANDED
    _again(session, message)
    return None


def _patience(session: Session, message: Message) -> float:
    return DOUBT_S + PIECE_S * len(_way(session, message).pieces)


def is_lost(session: Session, message: Message) -> bool:
    """Whether all that could be done has been done to get a message to the agent, in vain."""
    typed = last_typed(session.dir)
    if typed is None or typed.id != message.id or typed.attempt < ATTEMPTS:
        return False
    return time.time() > typed.at + _patience(session, message)


def shows(screen: Screen, typed: TypedMessage) -> bool:
    """Whether the composer holds a message that was typed, of which it may show but a part."""
    if screen.scrolled:
        return screen.draft.endswith(last_line(typed.id))
    row = screen.draft.split("\n", 1)[0]
    return row == typed.line or (len(row) >= ROW and typed.line.startswith(row))


def _again(session: Session, message: Message) -> None:
    queue.move(session.dir, message, Place.HANDED, Place.WAITING)


def told_by(session: Session, message: Message) -> str:
    """What the agent is told by a message that is typed; of a long one, what it begins with."""
    way = _way(session, message)
    return message.text if way.answer else way.line


def has_heard(
    session: Session, text: str, *, since: float, compacted_at: float = 0.0, beside: str = ""
) -> bool | None:
    """Whether the agent CLI has written down that it was told `text`, as `conversation` has it.

    None, too, if the screen cannot be looked at.
    """
    if not reads_conversation(session):
        return None
    path = window.read(session.dir).conversation or Path(os.devnull)
    return transcript.has_heard(path, text, since=since, compacted_at=compacted_at, beside=beside)


def is_taken_back(
    session: Session, message: Message, since: float, interrupted_at: float
) -> bool | None:
    """Say whether the agent CLI goes on as if a typed message had not been; None: not yet known.

    False where its transcript cannot be read: the receipt stands.
    """
    if not reads_conversation(session):
        return False
    path = window.read(session.dir).conversation or Path(os.devnull)
    way = _way(session, message)
    return transcript.is_taken_back(
        path,
        told_by(session, message),
        since=since,
        interrupted_at=interrupted_at,
        beside=way.line if way.answer else "",
    )


def reads_conversation(session: Session) -> bool:
    """Whether what the agent CLI writes down can be looked into: only that of one is understood.

    A file that is not there tells nothing, but of a context that has not had a prompt yet.
    """
    now = agent_state.read(session.dir)
    path = window.read(session.dir).conversation
    if session.profile.hooks != "claude" or not now.context or path is None:
        return False
    return path.is_file() or not now.prompt
