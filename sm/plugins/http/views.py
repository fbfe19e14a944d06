"""Views of sessions, from what is on disk alone; and the session that an id means."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from msgspec import structs

from sm.base.errors import UsageError
from sm.context import rotation_files
from sm.plugins.http.shapes import PendingRotation, Session
from sm.sessions import address as targets
from sm.sessions import agent_hooks, agent_state, registry, window
from sm.sessions.machine import Machine
from sm.sessions.project import list_configured
from sm.sessions.session import AnySession
from sm.store.paths import Root
from sm.views.figures import NO_FIGURES, Subject, read_figures
from sm.views.known import Damaged, Known, read_records, show
from sm.views.needs import list_machine_needs
from sm.views.open_need import OpenNeed
from sm.views.states import ShownState
from sm.web.errors import UnknownSessionError

RECALLED_S = 30.0
"""Seconds after our hook in which a recovery script that runs beside it may ask, on a slow
machine."""


def find(root: Root, ident: str | None) -> AnySession | None:
    """Find the session with exactly this id, None if there is none."""
    try:
        return registry.find(root, ident or "")
    except UsageError:
        return None  # what cannot be an id belongs to no message


def find_by_id(root: Root, ident: str) -> AnySession:
    """Find the session with exactly this id.

    Raises:
        UnknownSessionError: there is none.

    """
    if session := find(root, ident):
        return session
    raise UnknownSessionError(f"Session {ident} not found")


def find_meant(root: Root, text: str) -> AnySession:
    """Find the session of this id or name, as any command of sm would.

    Raises:
        UnknownSessionError: there is none, or there are several.

    """
    if session := find(root, text):
        return session
    try:
        return targets.find(root, text)
    except UsageError as error:
        raise UnknownSessionError(error.message) from error


def find_exactly(root: Root, text: str) -> AnySession:
    """Find the session of this whole id, or name: its start is too little for a final act.

    Raises:
        UnknownSessionError: there is none, or there are several.

    """
    found = find_meant(root, text)
    if text in (found.name, found.address):
        return found
    raise UnknownSessionError(f"no session '{text}': send the whole id '{found.name}', or the name")


def show_all(machine: Machine) -> list[Session]:
    """Show every session on record, by id; of a damaged one what is wrong with it."""
    found, damaged = read_records(machine.root)
    rows = [show(one, _show, _damaged) for one in found]
    rows = sorted([*rows, *map(_damaged, damaged)], key=lambda row: row.id)
    return _add_figures(machine, rows)


def _add_figures(machine: Machine, rows: list[Session]) -> list[Session]:
    """Add the figures of plugins; one that cannot be read is left out: `sm status` says why."""
    subjects = [Subject(row.id, row.project or "", row.issue or 0) for row in rows]
    figures = read_figures(machine.settings, subjects, lambda _: None)
    return [structs.replace(row, figures=figures.get(row.id, NO_FIGURES)) for row in rows]


def _damaged(one: Damaged) -> Session:
    return Session(
        id=one.id, name=one.name, status=ShownState.DAMAGED, error=one.why, proof=one.proof
    )


def show_session(machine: Machine, session: AnySession) -> Session:
    """Show one session.

    Raises:
        StateError: its files are not what they must be.

    """
    (row,) = _add_figures(machine, [_show(session)])
    return row


def _show(session: AnySession) -> Session:
    known, last = Known(session), rotation_files.read_last_document(session.dir)
    reading = known.reading
    return Session(
        id=session.name,
        name=known.name,
        status=known.state,
        provider=session.record.provider,
        parent_session_id=session.record.parent or None,
        working_dir=str(session.record.cwd),
        tmux_session=session.name,
        transcript_path=_transcript(session),
        created_at=datetime.fromtimestamp(session.record.created_at, UTC).isoformat(
            timespec="seconds"
        ),
        project=known.project or None,
        issue=known.issue or None,
        waiting=known.waiting,
        tokens_used=reading.used if reading else None,
        used_percentage=known.percent,
        context_window_size=reading.window if reading else None,
        last_handoff_path=str(last) if last and not _is_recalled(session) else None,
        pending_rotation=_pending(session),
        state_since=known.standing.since or None,
        proof=known.standing.proof,
    )


def show_needs(machine: Machine) -> list[OpenNeed]:
    """List a person's needs in all projects of the machine's configuration, and in no project.

    Raises:
        UsageError: the configuration cannot be used any more.

    """
    return list_machine_needs(machine, list_configured(machine))


def _transcript(session: AnySession) -> str | None:
    """Return the transcript of the present context; a name that is no text cannot be told."""
    known = window.read(session.dir)
    if known.conversation is None or known.id != agent_state.read(session.dir).context:
        return None
    return str(known.conversation)


def _is_recalled(session: AnySession) -> bool:
    """Say whether our hook tells the agent its document, as its context was just summed up.

    A recovery script of a person's own runs beside that hook, and would tell it a second time.
    """
    directory = session.dir
    if agent_hooks.are_ours(directory) and window.is_compacting(directory):
        return True
    try:
        return time.time() < directory.recalled.lstat().st_mtime + RECALLED_S
    except OSError:
        return False


def _pending(session: AnySession) -> PendingRotation | None:
    if under_way := rotation_files.read_record(session.dir):
        return PendingRotation(under_way.step, under_way.document or None, under_way.since)
    wish = rotation_files.read_wish(session.dir)
    return PendingRotation("scheduled", wish.path, wish.at) if wish else None
