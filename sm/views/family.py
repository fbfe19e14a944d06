"""Sessions of any kind, as their own files have them: who began which, and who is in them.

Changes nothing. Only those fields of a row are read that its face shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from msgspec import structs

from sm.adapters.tmux import Pane, Tmux
from sm.base.errors import SmError
from sm.base.redact import redact
from sm.base.refusal import Refusal
from sm.base.text import one_line
from sm.context import progress, rotation_files, usage
from sm.context.flags import read_flags
from sm.messages import queue
from sm.messages.follow_up import read_last_words
from sm.messages.queue import MessageFolder
from sm.sessions import activity, agent_state, monitors, pause, registry, window
from sm.sessions.activity import Evidence, Proof
from sm.sessions.presence_rule import LEFT_S, Disturbance, find_hindrance
from sm.sessions.record import IssueRecord
from sm.sessions.session import AdHocSession, AnySession
from sm.store.paths import Root
from sm.views.open_need import make_own_need
from sm.views.records import read_or, read_records
from sm.views.session_row import KIN, PendingRotation, SessionRow
from sm.views.states import ShownState

WORDS_LIMIT = 200
"""Characters of an agent's last words that a row has."""


# A row


def begin_row(session: AnySession) -> SessionRow:
    """Return the row of a session of which nothing but its record was read."""
    record = session.record
    return SessionRow(
        id=session.name,
        name=session.address,
        project=session.project_name,
        issue=session.issue,
        title=record.title if isinstance(record, IssueRecord) else str(record.cwd),
        provider=record.provider,
        parent=record.parent,
        cwd=str(record.cwd),
        begun_at=record.created_at,
        state=ShownState.DAMAGED,
        proof=Proof(Evidence.ERROR),
    )


def read_row(session: AnySession, fields: Collection[str] = KIN.values()) -> SessionRow:
    """Read a session: who it is, what its agent is doing, and these fields of its row.

    Raises:
        StateError: its files are not what they must be.

    """
    found = activity.look(session)
    row = structs.replace(
        begin_row(session),
        state=ShownState(found.state),
        state_since=found.since,
        proof=found.proof,
    )
    return add_fields(row, session, fields)


def add_fields(row: SessionRow, session: AnySession, fields: Collection[str]) -> SessionRow:
    """Return the row with these fields as the session's files have them now; others stay.

    Raises:
        StateError: its files are not what they must be.

    """
    wanted = frozenset(fields)
    found = {name: read(session) for name, read in READERS.items() if name in wanted}
    if "percent" in wanted:
        found |= _read_context(session)
    return structs.replace(row, **found)


def look_near(row: SessionRow, session: AnySession) -> SessionRow:
    """Add what a board shows beside a table: the context, the last words, what waits.

    Its texts are one line each. A context that cannot be read is unknown: the state of the row says
    what is damaged.
    """
    row = structs.replace(row, title=one_line(row.title), waits_for=one_line(row.waits_for))
    row = add_fields(row, session, ("queued", "words"))
    return read_or(lambda _: None, lambda: add_fields(row, session, ("percent",)), row)


def read_words(session: AnySession) -> str:
    """Return what the agent said at the end of its last turn, in one line, cleared of secrets."""
    return one_line(redact(read_last_words(session.dir, 0.0)), WORDS_LIMIT)


def _read_context(session: AnySession) -> Mapping[str, Any]:
    found = usage.read_current(session.dir, read_flags(session.dir))
    if found is None:
        return {}
    return {"percent": found.shown_percent, "tokens": found.used, "window": found.window}


def _read_transcript(session: AnySession) -> str:
    """Return the transcript of the present context; a name that is no text cannot be told."""
    known = window.read(session.dir)
    if known.conversation is None or known.id != agent_state.read(session.dir).context:
        return ""
    return str(known.conversation)


def _read_pending(session: AnySession) -> PendingRotation | None:
    if under_way := rotation_files.read_record(session.dir):
        return PendingRotation(under_way.step, under_way.document or None, under_way.since)
    wish = rotation_files.read_wish(session.dir)
    return PendingRotation("scheduled", wish.path, wish.at) if wish else None


def _is_paused(session: AnySession) -> bool:
    """Say whether the session is paused, alone or with others."""
    return pause.find(session.root, session.project_name, session.name) is not None


READERS: Mapping[str, Callable[[AnySession], Any]] = {
    "monitor": monitors.is_watched,
    "rotation": lambda one: "" if one.is_over else progress.describe(one.dir),
    "pending": _read_pending,
    "queued": lambda one: queue.count(one.dir, MessageFolder.WAITING),
    "words": read_words,
    "transcript": _read_transcript,
    "document": lambda one: str(rotation_files.read_last_document(one.dir) or ""),
    "paused": _is_paused,
}
"""Fields that are read by themselves, each by its function."""


# Lists


def list_descendants(root: Root, top: AnySession | None = None) -> list[SessionRow]:
    """List the descendants of `top`, each below its parent; without a `top`, all sessions."""
    known = sorted(registry.list_all(root), key=lambda session: session.record.created_at)
    if top is not None:
        return _below(known, top.name, 0)
    names = {session.name for session in known}
    first = [session for session in known if session.record.parent not in names]
    return [row for one in first for row in (read_row(one), *_below(known, one.name, 1))]


def _below(known: Iterable[AnySession], parent: str, depth: int) -> list[SessionRow]:
    # Each is looked for among the others only, so this ends, whatever the records say.
    found = []
    listed = list(known)
    for session in listed:
        if session.record.parent == parent:
            others = [one for one in listed if one is not session]
            found.append(structs.replace(read_row(session), depth=depth))
            found += _below(others, session.name, depth + 1)
    return found


def list_ad_hoc(root: Root, tmux: Tmux | None = None, *, near: bool = False) -> list[SessionRow]:
    """List the sessions that work on no issue, the oldest first; `tmux` is asked who is in them.

    With `near` as `look_near` sees them.
    """
    found = [one for one in read_records(root)[0] if isinstance(one, AdHocSession)]
    people = find_people(tmux, found, time.time()) if tmux else {}
    rows = [_read_ad_hoc(one, people.get(one.name)) for one in found]
    return [look_near(row, one) for row, one in zip(rows, found, strict=True)] if near else rows


def _read_ad_hoc(session: AdHocSession, there: Refusal | None) -> SessionRow:
    row = read_row(session)
    return structs.replace(
        row,
        waits_for=row.rotation,
        need=make_own_need(session, row.state),
        person=PEOPLE.get(there, "") if there else "",
    )


# People in them. They hide no need.

People = dict[str, Refusal]
"""Refusals that show what a person is doing in a session, by its id."""

PEOPLE = {
    Refusal.DRAFT: "half a line that a person has typed stands in its input line",
    Refusal.TYPING: "a person is in its terminal, and has typed within ten minutes",
}
HOLDERS = {
    Refusal.DRAFT: "the half line in its input line",
    Refusal.TYPING: "the person in its terminal",
    Refusal.ATTACHED: "the person in its terminal",
}
"""Person or draft that keeps `sm` from acting, in words: nothing is wrong, it only waits."""


def find_people(tmux: Tmux, sessions: Iterable[AnySession], now: float) -> People:
    """Find which of these sessions a person is in, and by what it is seen.

    tmux is asked once for all. The screen is looked at only where somebody has typed within the
    hour: an older draft is nobody's any more, and no reason to tell nobody else.
    """
    listed = list(sessions)
    try:
        panes = tmux.panes() if listed else {}
    except SmError:
        return {}
    near = [one for one in listed if one.name in panes and _is_used(panes[one.name], now)]
    found = ((one.name, _look(one, now)) for one in near)
    return {name: refusal for name, refusal in found if refusal}


def _is_used(pane: Pane, now: float) -> bool:
    return pane.attached_at > 0 and pane.keyed_at > now - LEFT_S


def _look(session: AnySession, now: float) -> Refusal | None:
    from sm.messages.presence import observe_hands

    try:
        return find_hindrance(Disturbance.REMIND, observe_hands(session), now)
    except SmError:
        return None
