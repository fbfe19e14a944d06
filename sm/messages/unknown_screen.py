"""Tells a person of a terminal that shows nothing sm knows, and has stood still for a minute.

A client that asks what no hook tells, in words that its profile does not have, waits for ever. Such
a screen is looked for where a message cannot be typed; with a client that has hooks, also each time
after its terminal has drawn something and come to rest. A client at work draws all the time.
"""

from __future__ import annotations

import hashlib
import math
import time

from msgspec import Struct, structs

from sm.adapters.agent.screen import parse
from sm.adapters.tmux import MissingPaneError, NoServerError
from sm.base.clock import is_within
from sm.base.need import NeedKind
from sm.base.redact import redact
from sm.base.refusal import Refusal
from sm.base.text import printable
from sm.messages import alerts, observe
from sm.messages.decide import shows_unknown
from sm.sessions import agent as agents
from sm.sessions import agent_state, terminal
from sm.sessions.session import AnySession, Session
from sm.sessions.signs import PATIENCE_S
from sm.store.damage import read_rebuildable
from sm.store.files import discard, write_json

AGAIN_S = 5.0
"""Seconds until the screen is looked at once more before a person hears of it: the first look may
have made the client draw its input line."""
DIGEST = 16
EMPTY = "nothing at all"
LAST_ROWS, SHOWN = 4, 400
"""Part of the screen that a person is shown: its last rows, and characters of these."""
BY_SIGHT = (Refusal.BUSY, Refusal.DIALOG, Refusal.DRAFT)
"""Reasons for which a message waits if the screen shows something that is known."""


class TerminalLook(Struct, frozen=True):
    """The last look at a terminal that had drawn at `drawn_at`; times are in seconds since 1970.

    `digest` stands for the screen that was unknown, '' if it was known. It was there `since` then,
    `text` is what a person is shown of it, and `told_at` when they were told, 0 if they were not.
    """

    drawn_at: float = 0.0
    looked_at: float = 0.0
    digest: str = ""
    since: float = 0.0
    text: str = ""
    told_at: float = 0.0


NEVER = TerminalLook()


def read_drawn_at(session: Session) -> float | None:
    """Return when the session's terminal has drawn last, by its log; None if there is no log."""
    try:
        return min(session.terminal_log.stat().st_mtime, time.time())
    except OSError:
        return None


def find(session: AnySession) -> TerminalLook | None:
    """Return the unknown screen that a person was told about; None once the agent has gone on."""
    last = _read(session)
    return last if last.told_at and not _has_gone_on(session, last) else None


def tend(session: Session, refusal: Refusal | None, drawn_at: float | None) -> float:
    """Tell a person if the terminal shows what is unknown; return when to look again.

    `refusal` is why a message waits, and `drawn_at` is `read_drawn_at` before that was found out: a
    delivery may have the client draw its screen again.

    Raises:
        TmuxError, TmuxBusyError: tmux could not be asked.

    """
    last, waits = _read(session), refusal is Refusal.NO_PROMPT
    if drawn_at is None or refusal in BY_SIGHT or not (waits or session.profile.hooks):
        if last.digest:
            discard(session.dir.looked)
        return math.inf
    if time.time() < (due_at := _find_due(last, drawn_at, waits=waits)):
        return due_at
    return _look(session, last, drawn_at)


def _find_due(last: TerminalLook, drawn_at: float, *, waits: bool) -> float:
    """Return when the terminal is to be looked at; a time that is past means now."""
    is_new = last.drawn_at != drawn_at
    if last.told_at:  # a person may have answered, of which no hook has to tell
        return (last.looked_at if is_new else time.time()) + PATIENCE_S
    if last.digest:
        return max(last.since + PATIENCE_S, last.looked_at + AGAIN_S)
    if waits:
        return drawn_at
    return drawn_at + PATIENCE_S if is_new else math.inf


def _look(session: Session, last: TerminalLook, drawn_at: float) -> float:
    known = agents.load(session.dir)
    try:
        sight = observe.look(session, known.pane_id) if known else None
    except (MissingPaneError, NoServerError):
        sight = None
    if known is None or sight is None or not agents.runs_in_pane(sight.pane, known):
        return math.inf
    pane, now = sight.pane, time.time()
    if pane.keyed_at > pane.created and is_within(PATIENCE_S, pane.keyed_at):
        return pane.keyed_at + PATIENCE_S  # who types sees it
    if sight.screen.gone or not shows_unknown(observe.observe_terminal(session, sight)):
        write_json(session.dir.looked, TerminalLook(drawn_at, now))
        return math.inf
    rows = [
        row
        for row in (printable(one.text).strip() for one in parse(terminal.capture(session)))
        if row
    ]
    digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()[:DIGEST]
    found = structs.replace(last, drawn_at=drawn_at, looked_at=now)
    if digest != last.digest or (last.told_at and _has_gone_on(session, last)):
        text = redact(" / ".join(rows[-LAST_ROWS:]))[:SHOWN]
        found = TerminalLook(drawn_at, now, digest, since=drawn_at, text=text or EMPTY)
    elif not last.told_at and is_within(observe.DRAWS_S, drawn_at):
        found = structs.replace(found, since=drawn_at)  # the same picture of what moves
    elif not last.told_at:
        _tell(session, last)
        found = structs.replace(found, told_at=now)
    write_json(session.dir.looked, found)
    return _find_due(found, drawn_at, waits=True)


def _tell(session: Session, found: TerminalLook) -> None:
    what = "has shown a screen for a minute that sm does not know, and may wait for a person"
    alerts.note(
        session,
        f"{what}: {found.text}",
        f"screen:{found.since}",
        need=NeedKind.DIALOG,
        command=f"sm attach {session.address}",
        parent=False,
    )


def _has_gone_on(session: AnySession | Session, last: TerminalLook) -> bool:
    """Whether a hook has told anything, or the agent was launched again, since people were told."""
    told = agent_state.read(session.dir)
    return max(told.active_at, told.since) > last.told_at


def _read(session: AnySession | Session) -> TerminalLook:
    return read_rebuildable(session.dir.looked, TerminalLook) or NEVER
