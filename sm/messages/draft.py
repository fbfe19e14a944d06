"""Draft in an agent's composer: types a message, keeps what was typed, and finds it there again.

`typed` on disk is the message that was typed last. That it was typed at all, tmux remembers, in the
pane. The receipt is a file that the agent's prompt hook leaves when it hears of the prompt.

A composer wraps long lines, shows only the end of a long draft, and may leave out its middle. So
letters and digits are compared, and nothing else. On a busy machine an agent CLI takes some of a
paste's end mark for text: that is no addition of a person.
"""

from __future__ import annotations

import json
import re
import time

from msgspec import Struct, structs

from sm.adapters.agent.profile import Profile
from sm.adapters.agent.screen import GAP, Screen, split_draft
from sm.adapters.composer import type_once
from sm.adapters.tmux import Pane
from sm.base.clock import wait_until
from sm.base.refusal import Refusal
from sm.messages import queue
from sm.messages.queue import Message, MessageFolder
from sm.messages.wire import Wire, make_last_line, make_wire
from sm.sessions import agent_state
from sm.sessions.session import Session
from sm.store.damage import read_rebuildable
from sm.store.failpoint import crash_point
from sm.store.files import discard, write_atomic, write_json
from sm.store.paths import SessionDir

RECEIPT_S = 5.0
PIECE_S = 0.03
"""Time that a receipt is waited for, and for each piece of a long text, in seconds. Claude Code
2.1.329 needs 0.05 s, 0.2 at worst, and 8 s for a thousand pieces."""
ATTEMPTS = 3
LOOK_S = 0.005


class TypedMessage(Struct, frozen=True):
    """Last message that was typed: `line` is its look in the composer, `at` seconds since 1970.

    `before` is the message that was typed before this one, as long as this may not be typed yet.
    `pressed`: the keys that submit were pressed once more, in vain. `may_add`: a hook could add
    the text to its line, as it was seen then; what is known of hooks later may differ.
    """

    id: str
    attempt: int
    line: str
    at: float
    before: TypedMessage | None = None
    pressed: bool = False
    may_add: bool = True

    @property
    def key(self) -> str:
        """Name under which tmux remembers the message."""
        return f"{self.id}.{self.attempt}"


def read_last_typed(directory: SessionDir) -> TypedMessage | None:
    """Return the message that was typed last; None also if damaged: others know of it, too."""
    return read_rebuildable(directory.typed, TypedMessage)


def list_keys(ident: str) -> tuple[str, ...]:
    """List every key under which tmux may remember the message of this id."""
    return tuple(f"{ident}.{attempt + 1}" for attempt in range(ATTEMPTS))


def type_message(session: Session, pane: Pane, screen: Screen, message: Message) -> Refusal | None:
    """Type `message`, which is in `cur`, into the composer that `screen` shows, once.

    A person's draft is put aside and comes back. Returns HANDED when it is typed and not confirmed
    in time; any other refusal is what was in the way of typing: then the message waits again.

    Raises:
        TmuxBusyError: it is not known whether it was typed; the next delivery finds out.

    """
    directory = session.dir
    may_add = _calls_hooks(session)
    way = _make_way(session, message, may_add=may_add)
    before = read_last_typed(directory)
    attempt = before.attempt + 1 if before and before.id == message.id else 1
    typed = TypedMessage(
        message.id,
        attempt,
        way.line,
        time.time(),
        before and structs.replace(before, before=None),
        may_add=may_add,
    )
    write_json(directory.typed, typed)
    prompt = json.dumps(way.expected, ensure_ascii=False)[1:-1]
    expected = f"{message.id} {way.match}\n{prompt}\n{way.answer or way.remedy}\n"
    write_atomic(directory.expect, expected)
    if way.quotes:
        queue.keep_quotes(directory, message.id, way.quotes)
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
        return await_receipt(session, message, RECEIPT_S + PIECE_S * len(way.pieces))
    write_atomic(directory.expect, "")
    take_back(session, typed)
    queue.move(directory, message, MessageFolder.HANDED, MessageFolder.WAITING)
    return refusal


def find_last_accepted_at(session: Session) -> float:
    """Return when the agent got what was last typed, seconds since 1970; 0 where it has not."""
    typed = read_last_typed(session.dir)
    return (queue.find_accepted_at(session.dir, typed.id) if typed else None) or 0.0


def take_back(session: Session, typed: TypedMessage) -> None:
    """Take back that it was typed: an interruption would give back the message before it."""
    if typed.before:
        write_json(session.dir.typed, typed.before)
    else:
        discard(session.dir.typed)


def find_way(session: Session, message: Message) -> Wire:
    """Find the wire form of a message, as it was typed or would be, and how its arrival shows."""
    typed = read_last_typed(session.dir)
    decided = typed.may_add if typed and typed.id == message.id else None
    may_add = _calls_hooks(session) if decided is None else decided
    return _make_way(session, message, may_add=may_add)


def _make_way(session: Session, message: Message, *, may_add: bool) -> Wire:
    shown = queue.phrase(session.dir, message)
    command = queue.make_show_command(session.dir, message)
    file = queue.locate_quotes(session.dir, message.id)
    return make_wire(session.profile, message, shown, command, file, may_add=may_add)


def _calls_hooks(session: Session) -> bool:
    """Whether the agent calls hooks, as far as is known: settings above ours can prevent it.

    One that tells of a new context at once has told of its first before it has an input line.
    """
    return not session.profile.tells_of_clear or bool(agent_state.read(session.dir).context)


def await_receipt(session: Session, message: Message, timeout_s: float) -> Refusal | None:
    """Wait for the receipt of a message; HANDED if none comes in time."""
    directory = session.dir
    if not session.profile.hooks:
        return None
    is_told = wait_until(lambda: queue.is_accepted(directory, message.id), timeout_s, LOOK_S)
    return None if is_told else Refusal.HANDED


ROW = 40
"""Letters of a row. A row that holds less of a long line belongs to another text."""
PASTE_MARK = re.compile(r"(?:(?:\[?2)?0)?[01]~")
OURS = 20
"""Letters from which on the draft is ours: a person may have begun to type the same."""


def begins_like(screen: Screen, typed: TypedMessage) -> bool:
    """Whether the draft begins as the message that was typed; a person may have added to it."""
    if screen.scrolled:
        return screen.draft.endswith(make_last_line(typed.id))
    row = screen.draft.split("\n", 1)[0]
    return row == typed.line or (len(row) >= ROW and typed.line.startswith(row))


def holds_only(profile: Profile, screen: Screen, text: str, least: int = OURS) -> bool:
    """Whether the draft is the beginning of `text`, and nothing else.

    `least` is the number of letters that it has at least, unless `text` has fewer.
    """
    if screen.draft in ("", text):
        return bool(screen.draft)
    whole = _letters(text)
    shown = PASTE_MARK.sub(GAP, screen.draft)
    first, *others = parts = [_letters(part) for part in split_draft(profile, shown)]
    begins = first in whole if screen.scrolled else whole.startswith(first)
    enough = bool(whole) and sum(map(len, parts)) >= min(least, len(whole))
    return enough and begins and all(part in whole for part in others)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
