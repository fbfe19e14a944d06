"""Views of sessions, from what is on disk alone; and the session that an id means."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from sm.base.errors import UsageError
from sm.plugins.http.shapes import SESSION, Session
from sm.sessions import address as targets
from sm.sessions import agent_hooks, registry, window
from sm.sessions.machine import Machine
from sm.sessions.project import list_configured
from sm.sessions.session import AnySession
from sm.store.paths import Root
from sm.views.family import read_row
from sm.views.figures import NO_FIGURES, Subject, read_figures
from sm.views.needs import list_machine_needs
from sm.views.open_need import OpenNeed
from sm.views.records import Damaged, read_records, show
from sm.views.session_row import tell
from sm.views.states import ShownState
from sm.web.answers import UnknownSessionError

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


def show_all(machine: Machine) -> list[Any]:
    """Show every session on record, by id; of a damaged one what is wrong with it."""
    found, damaged = read_records(machine.root)
    shown = [*(show(one, _show, _show_damaged) for one in found), *map(_show_damaged, damaged)]
    return _add_figures(machine, sorted(shown, key=lambda one: str(one.id)))


def show_session(machine: Machine, session: AnySession) -> Any:
    """Show one session.

    Raises:
        StateError: its files are not what they must be.

    """
    (shown,) = _add_figures(machine, [_show(session)])
    return shown


def _add_figures(machine: Machine, shown: list[Any]) -> list[Any]:
    """Add the figures of plugins; one that cannot be read is left out: `sm status` says why."""
    subjects = [Subject(one.id, one.project or "", one.issue or 0) for one in shown]
    figures = read_figures(machine.settings, subjects, lambda _: None)
    return [structs.replace(one, figures=figures.get(one.id, NO_FIGURES)) for one in shown]


def _show_damaged(one: Damaged) -> Any:
    return Session(
        id=one.id, name=one.name, status=ShownState.DAMAGED, error=one.why, proof=one.proof
    )


def _show(session: AnySession) -> Any:
    row = read_row(session, SESSION.values())
    told = tell(row, SESSION, time.time())
    told |= {key: None for key in NULL if not told[key]}
    told["created_at"] = datetime.fromtimestamp(row.begun_at, UTC).isoformat(timespec="seconds")
    if row.document and _is_recalled(session):
        told["last_handoff_path"] = None
    return Session(**told)


NULL = (
    *("parent_session_id", "transcript_path", "project", "issue"),
    *("last_handoff_path", "state_since"),
)
"""Keys that are null where the field of the row is empty."""


def show_needs(machine: Machine) -> list[OpenNeed]:
    """List a person's needs in all projects of the machine's configuration, and in no project.

    Raises:
        UsageError: the configuration cannot be used any more.

    """
    return list_machine_needs(machine, list_configured(machine))


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
